/* Recorded arrivals: Mooncake's JSONL, the Azure LLM inference traces' CSV and a plain CSV. Formats are told apart by the
 * first character ('{' = JSONL) and by the CSV's header. Lines must be in the order of time: a file that is not is
 * refused, because a line out of place is more often a damaged file than a different taste of sorting. */
#include "load/load_impl.h"
#include "os/os.h"

#include <math.h>

#define TRACE_BYTES_MAX ((size_t)256 << 20)
#define COUNT_MAX 10000000.0 /* tokens of one request */

typedef struct reader {
    const char *path;
    size_t line;
    bool dated; /* Azure: times of day, the first one is 0 */
    double first_s;
    int at, in, out; /* columns */
} reader;

static tl_status bad(const reader *r, const char *what, const char *value, tl_err *e) {
    (void)tl_fail(e, TL_INVALID, "%s:%zu: %s: '%.60s'", r->path, r->line, what, value);
    return tl_remedy(e, "correct the line or take it out; a trace has a time and two token counts in every line");
}

static bool within(int x, int low, int high) { return x >= low && x <= high; }
static bool is_utc(const char *zone) { return *zone == '\0' || tl_str_eq(zone, "Z") || tl_str_eq(zone, "+00:00"); }

/* "2023-11-16 18:17:03.9799600", days by Howard Hinnant's civil calendar formula; leap seconds do not matter here. */
static bool date_s(double *out, const char *t) {
    int y, mo, d, h, mi, used = 0;
    double s;
    if (sscanf(t, "%4d-%2d-%2d%*1[ T]%2d:%2d:%lf%n", &y, &mo, &d, &h, &mi, &s, &used) != 6 || used == 0) return false;
    if (!within(mo, 1, 12) || !within(d, 1, 31) || !within(h, 0, 23) || !within(mi, 0, 59) || !(s >= 0 && s < 61)) return false;
    t += used;
    if (!is_utc(t)) return false;
    y -= mo <= 2;
    int era = y / 400, year = y % 400, day = (153 * (mo + (mo > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t days = (int64_t)era * 146097 + year * 365 + year / 4 - year / 100 + day;
    *out = (double)(((days * 24 + h) * 60 + mi) * 60) + s;
    return true;
}

static tl_status add(tl_load_trace *out, reader *r, double at_s, double in, double tokens, tl_err *e) {
    char text[64];
    (void)snprintf(text, sizeof text, "%g s, %g in, %g out", at_s, in, tokens);
    if (at_s < 0 || at_s > 1e9) return bad(r, "a time below 0 or beyond reason", text, e);
    if (in < 1 || in > COUNT_MAX || in != floor(in)) return bad(r, "not a prompt length in tokens", text, e);
    if (tokens < 0 || tokens > COUNT_MAX || tokens != floor(tokens)) return bad(r, "not an output length in tokens", text, e);
    const tl_load_arrived a = {.at_ns = (uint64_t)(at_s * 1e9), .prompt_n = (int64_t)in, .output_n = (int64_t)tokens};
    if (out->n > 0 && a.at_ns < out->v[out->n - 1].at_ns) return bad(r, "earlier than the line before", text, e);
    TL_PUSH(out->v, out->n, out->cap, a);
    return TL_OK;
}

static tl_status json_number(double *out, const reader *r, const json_t *o, const char *key, tl_err *e) {
    const json_t *v = json_object_get(o, key);
    if (!json_is_number(v)) return bad(r, v ? "not a number" : "missing", key, e);
    *out = json_number_value(v);
    return TL_OK;
}

static tl_status json_hashes(tl_load_arrived *a, const reader *r, const json_t *o, tl_err *e) {
    const json_t *ids = json_object_get(o, "hash_ids");
    size_t n = json_array_size(ids);
    if (!ids) return TL_OK;
    if (!json_is_array(ids)) return bad(r, "not a list", "hash_ids", e);
    a->hash_ids = tl_xalloc((n ? n : 1) * sizeof *a->hash_ids);
    a->n_hash_ids = n;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id)) return bad(r, "an id that is no whole number", "hash_ids", e);
        a->hash_ids[i] = json_integer_value(id);
    }
    return TL_OK;
}

static tl_status json_line(tl_load_trace *out, reader *r, const char *text, tl_err *e) {
    tl_status st = TL_OK;
    double ms = 0, in = 0, tokens = 0;
    json_t *o = NULL;
    if (tl_json_parse(&o, text, strlen(text), "line", NULL) != TL_OK || !json_is_object(o)) TRY(bad(r, "not a JSON object", text, e));
    TRY(json_number(&ms, r, o, "timestamp", e));
    TRY(json_number(&in, r, o, "input_length", e));
    TRY(json_number(&tokens, r, o, "output_length", e));
    TRY(add(out, r, ms / 1e3, in, tokens, e));
    TRY(json_hashes(&out->v[out->n - 1], r, o, e));
out:
    json_decref(o);
    return st;
}

#define FIELDS 64

/* Cuts at commas, in place. Quoted fields do not occur in these formats. */
static size_t cut(char **f, char *text) {
    size_t n = 0;
    for (f[n++] = text; (text = strchr(text, ',')) != NULL && n < FIELDS; f[n++] = text) *text++ = '\0';
    return n;
}

static int column(char **f, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (tl_str_eq(f[i], name)) return (int)i;
    return -1;
}

static tl_status csv_header(reader *r, char *text, tl_err *e) {
    static const char *const names[2][3] = {{"at_s", "prompt_tokens", "output_tokens"},
                                            {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}};
    char *f[FIELDS];
    size_t n = cut(f, text);
    r->dated = column(f, n, "TIMESTAMP") >= 0;
    int *at[3] = {&r->at, &r->in, &r->out};
    for (int i = 0; i < 3; i++) {
        *at[i] = column(f, n, names[r->dated][i]);
        if (*at[i] < 0) return bad(r, "the header has no such column", names[r->dated][i], e);
    }
    return TL_OK;
}

static tl_status csv_line(tl_load_trace *out, reader *r, char *text, tl_err *e) {
    char *f[FIELDS];
    double v[3];
    size_t n = cut(f, text);
    int last = r->at > r->in ? r->at : r->in;
    if (r->out > last) last = r->out;
    if ((size_t)last >= n) return bad(r, "the line is cut off", f[0], e);
    if (!(r->dated ? date_s(&v[0], f[r->at]) : tl_parse_f64(f[r->at], &v[0]))) return bad(r, "not a time", f[r->at], e);
    if (!tl_parse_f64(f[r->in], &v[1])) return bad(r, "not a number", f[r->in], e);
    if (!tl_parse_f64(f[r->out], &v[2])) return bad(r, "not a number", f[r->out], e);
    if (r->dated && out->n == 0) r->first_s = v[0];
    if (r->dated && v[0] < r->first_s) return bad(r, "earlier than the first line", f[r->at], e);
    return add(out, r, v[0] - r->first_s, v[1], v[2], e);
}

static tl_status read_lines(tl_load_trace *out, reader *r, char *p, tl_err *e) {
    tl_status st = TL_OK;
    bool header = false;
    if (strncmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
    const bool json = *p == '{';
    for (char *next; p && *p; p = next) {
        if ((next = strchr(p, '\n')) != NULL) *next++ = '\0';
        size_t len = strlen(p);
        if (len > 0 && p[len - 1] == '\r') p[--len] = '\0';
        r->line++;
        if (len == 0) continue;
        if (json)
            TRY(json_line(out, r, p, e));
        else if (!header)
            TRY(csv_header(r, p, e));
        else
            TRY(csv_line(out, r, p, e));
        header = true;
    }
    if (out->n == 0) TRY(bad(r, "no request in this file", "", e));
out:
    return st;
}

tl_status tl_load_trace_parse(tl_load_trace *out, const char *bytes, size_t len, const char *name, tl_err *e) {
    tl_status st = TL_OK;
    reader r = {.path = name};
    char *text = tl_xstrndup(bytes, len); /* lines are cut in place */
    *out = (tl_load_trace){0};
    if (strlen(text) != len) TRY(bad(&r, "a zero byte: this is no text", "", e));
    TRY(read_lines(out, &r, text, e));
out:
    free(text);
    if (st != TL_OK) tl_load_trace_free(out);
    return st;
}

tl_status tl_load_trace_read(tl_load_trace *out, const char *path, tl_err *e) {
    tl_buf text;
    *out = (tl_load_trace){0};
    tl_buf_init(&text, 0);
    tl_status st = tl_file_read(&text, path, TRACE_BYTES_MAX, e);
    if (st == TL_OK) st = tl_load_trace_parse(out, text.len ? text.p : "", text.len, path, e);
    tl_buf_free(&text);
    return st;
}

tl_status tl_load_trace_speed(tl_load_trace *t, double speed, tl_err *e) {
    if (!isfinite(speed) || speed <= 0) {
        (void)tl_fail(e, TL_INVALID, "a replay speed of %g", speed);
        return tl_remedy(e, "give a factor above 0: 1 as recorded, 2 twice as fast");
    }
    for (size_t i = 0; i < t->n; i++) {
        double ns = (double)t->v[i].at_ns / speed;
        if (ns > 9e18) return tl_fail(e, TL_INVALID, "a replay speed of %g puts arrival %zu beyond the clock", speed, i + 1);
        t->v[i].at_ns = (uint64_t)ns;
    }
    return TL_OK;
}

void tl_load_trace_free(tl_load_trace *t) {
    for (size_t i = 0; i < t->n; i++) free(t->v[i].hash_ids);
    free(t->v);
    *t = (tl_load_trace){0};
}
