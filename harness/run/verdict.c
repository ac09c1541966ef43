/* The answer of a re-run: published cells against the reader's own. Pure: JSON in, JSON out.
 *
 * The rules (DESIGN.md 1.6, METRICS.md 2):
 *   unavailable  a published cell could not be run
 *   different    the model is another file (its digest says so), or the speeds differ by more than the physics of the two
 *                machines says
 *   exact        the numbers are the same to the last digit
 *   equivalent   same class of machine, and the two intervals overlap or the medians are within 15 % (one chip with one
 *                quantisation is expected within 15 %, PHYSICS.md 5.2 rule 10)
 *   explained    the speeds differ, but by the factor that the two predictions differ by (each made from the bandwidth
 *                that was probed around the trials), within 15 % or within the intervals
 * The verdict of a figure is the worst of its cells. */
#include "run/run_impl.h"

#include <math.h>

#define SAME_WITHIN 0.15

static const char *const names[] = {"exact", "equivalent", "explained", "different", "unavailable"};

const char *tl_rerun_verdict_name(tl_rerun_verdict v) {
    return names[v];
}

tl_rerun_verdict tl_rerun_verdict_of(const char *name) {
    for (size_t i = 0; i < TL_COUNT(names); i++)
        if (tl_str_eq(name, names[i])) return (tl_rerun_verdict)i;
    return TL_RERUN_UNAVAILABLE;
}

typedef struct side {
    double value, lo, hi, predicted;
    const char *model_sha256;
    bool given;
} side;

static side read_side(const json_t *cell) {
    side s = {.value = tl_json_num(cell, "value", NAN)};
    s.lo = tl_json_num(cell, "lo", s.value);
    s.hi = tl_json_num(cell, "hi", s.value);
    s.predicted = tl_json_num(cell, "predicted", NAN);
    s.model_sha256 = tl_json_str(cell, "model_sha256", NULL);
    s.given = isfinite(s.value);
    return s;
}

/* Is `r` = own/published the same as `expected`, within 15 % or within the two intervals? */
static bool within(const side *pub, const side *own, double expected) {
    double r = own->value / pub->value / expected;
    if (fabs(r - 1) <= SAME_WITHIN) return true;
    return own->lo <= pub->hi * expected && own->hi >= pub->lo * expected;
}

static tl_rerun_verdict judge_cell(const side *pub, const side *own, bool same_class, tl_buf *why) {
    if (!pub->given || !own->given) {
        tl_buf_str(why, own->given ? "the published figure has no number for this cell" : "this cell could not be run");
        return TL_RERUN_UNAVAILABLE;
    }
    if (pub->model_sha256 != NULL && own->model_sha256 != NULL && strcmp(pub->model_sha256, own->model_sha256) != 0) {
        tl_buf_fmt(why, "another model file: published digest %.12s, yours %.12s", pub->model_sha256, own->model_sha256);
        return TL_RERUN_DIFFERENT;
    }
    if (own->value == pub->value && own->lo == pub->lo && own->hi == pub->hi && same_class) {
        tl_buf_str(why, "the same number to the last digit");
        return TL_RERUN_EXACT;
    }
    double r = own->value / pub->value, expected = own->predicted / pub->predicted;
    if (same_class && within(pub, own, 1)) {
        tl_buf_fmt(why, "same class of machine, %.2f times the published speed", r);
        return TL_RERUN_EQUIVALENT;
    }
    if (isfinite(expected) && within(pub, own, expected)) {
        tl_buf_fmt(why, "%.2f times the published speed, and the two predictions differ by %.2f", r, expected);
        return TL_RERUN_EXPLAINED;
    }
    tl_buf_fmt(why, "%.2f times the published speed", r);
    if (isfinite(expected)) tl_buf_fmt(why, ", where the predictions differ by %.2f", expected);
    return TL_RERUN_DIFFERENT;
}

static const json_t *find_cell(const json_t *cells, const char *key) {
    size_t i;
    json_t *c;
    json_array_foreach((json_t *)cells, i, c) if (tl_str_eq(tl_json_str(c, "key", ""), key)) return c;
    return NULL;
}

/* Same processor model, same number of cores, same GPUs: one class. Memory speed is judged by the probes. */
static bool same_machine_class(const json_t *a, const json_t *b) {
    static const char *const paths[] = {"cpu.model", "cpu.cores"};
    for (size_t i = 0; i < TL_COUNT(paths); i++) {
        const json_t *x = tl_json_at(a, paths[i]), *y = tl_json_at(b, paths[i]);
        bool none_x = x == NULL || json_is_null(x), none_y = y == NULL || json_is_null(y);
        if (none_x != none_y || (!none_x && !json_equal(x, y))) return false;
    }
    const json_t *ga = json_object_get(a, "gpu"), *gb = json_object_get(b, "gpu");
    if (json_array_size(ga) != json_array_size(gb)) return false;
    for (size_t i = 0; i < json_array_size(ga); i++)
        if (!tl_str_eq(tl_json_str(json_array_get(ga, i), "name", NULL), tl_json_str(json_array_get(gb, i), "name", NULL))) return false;
    return true;
}

/* What differs between the two environments, likeliest cause of a different speed first. */
json_t *run_environment_diff(const json_t *pub, const json_t *own, const char *pub_name, const char *own_name) {
    static const struct {
        const char *what, *path;
    } facts[] = {
        {"engine build", "engine.build"},
        {"engine binary", "engine.binary.sha256"},
        {"layers on the GPU", "engine.effective.gpu_layers"},
        {"threads", "engine.effective.threads"},
        {"flash attention", "engine.effective.flash_attention"},
        {"KV cache type", "engine.effective.kv_type_k"},
        {"context of a slot", "engine.effective.ctx_slot"},
        {"processor", "machine.cpu.model"},
        {"cores", "machine.cpu.cores"},
        {"governor", "machine.cpu.governor"},
        {"GPU", "machine.gpu.0.name"},
        {"GPU driver", "machine.gpu.0.driver"},
        {"memory", "machine.memory.total_bytes"},
        {"kernel", "machine.os.kernel"},
        {"tally revision", "tally.revision"},
        {"experiment script", "script_sha256"},
    };
    json_t *out = json_array();
    for (size_t i = 0; i < TL_COUNT(facts); i++) {
        json_t *a = tl_json_at(pub, facts[i].path), *b = tl_json_at(own, facts[i].path);
        if ((a == NULL && b == NULL) || (a != NULL && b != NULL && json_equal(a, b))) continue;
        json_array_append_new(out, json_pack("{s:s, s:O?, s:O?}", "what", facts[i].what, pub_name, a, own_name, b));
    }
    return out;
}

json_t *tl_rerun_compare(const json_t *published, const json_t *own) {
    bool same_class = same_machine_class(json_object_get(published, "machine"), json_object_get(own, "machine"));
    const json_t *pub_cells = json_object_get(published, "cells"), *own_cells = json_object_get(own, "cells");
    json_t *cells = json_array(), *c;
    tl_rerun_verdict worst = TL_RERUN_EXACT;
    size_t i;
    tl_buf why;
    tl_buf_init(&why, 0);
    json_array_foreach((json_t *)pub_cells, i, c) {
        const char *key = tl_json_str(c, "key", "");
        const json_t *mine = find_cell(own_cells, key);
        side p = read_side(c), o = read_side(mine);
        tl_buf_clear(&why);
        tl_rerun_verdict v = judge_cell(&p, &o, same_class, &why);
        if (v > worst) worst = v;
        json_array_append_new(cells, json_pack("{s:s, s:s, s:s, s:O, s:o}", "key", key, "verdict", names[v], "why", why.p,
                                               "published", c, "yours", mine ? json_incref((json_t *)mine) : json_null()));
    }
    tl_buf_free(&why);
    if (json_array_size(cells) == 0) worst = TL_RERUN_UNAVAILABLE;
    return json_pack("{s:s, s:b, s:o, s:o}", "verdict", names[worst], "same_class", same_class, "cells", cells,
                     "environment", run_environment_diff(published, own, "published", "yours"));
}
