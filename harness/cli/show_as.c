/* A request is rebuilt from what is stored of it (events, counters, times), or from a stream file on virtual times; the
 * peer module says the rest. */
#include "cli/show_as.h"

#include <math.h>

#include "peer/peer.h"

typedef struct requests {
    tl_request *r;
    char **id; /* of each */
    size_t n, cap, cap_id;
    size_t without; /* stored without events */
} requests;

static void requests_free(requests *q) {
    for (size_t i = 0; i < q->n; i++) {
        tl_request_free(&q->r[i]);
        free(q->id[i]);
    }
    free(q->r);
    free(q->id);
}

static void add_request(requests *q, tl_request *r, const char *id) {
    size_t n = q->n;
    TL_PUSH(q->r, n, q->cap, *r);
    TL_PUSH(q->id, q->n, q->cap_id, tl_xstrdup(id));
}

/* ---- from the store --------------------------------------------------------------------------------------------- */

static const char *dialect_name(const char *stored) {
    const tl_dialect *d = tl_dialect_find(stored);
    return d ? tl_dialect_name(d) : "";
}

/* Stored events count from the run's anchor, the other times are the clock's own. */
static tl_status restore(requests *q, tl_store *s, const json_t *row, tl_err *e) {
    const json_t *c = json_object_get(row, "counters"), *intended = tl_json_at(c, "t_ns.intended");
    const char *id = tl_json_str(row, "id", "");
    tl_store_event *ev = NULL;
    size_t n = 0;
    if (!json_is_integer(intended) || !json_is_integer(json_object_get(row, "t_intended_ns"))) {
        q->without++;
        return TL_OK;
    }
    tl_status st = tl_store_request_events(&ev, &n, s, id, e);
    if (st == TL_NOT_FOUND) n = 0, st = TL_OK;
    if (st != TL_OK) return st;
    tl_request r;
    tl_request_init(&r);
    tl_request_restore(&r, c);
    r.dialect = dialect_name(tl_json_str(c, "dialect", ""));
    uint64_t anchor = r.t_intended - (uint64_t)tl_json_int(row, "t_intended_ns", 0);
    for (size_t i = 0; i < n; i++)
        if (ev[i].kind != TL_STORE_READ_KIND) tl_request_event(&r, anchor + (uint64_t)ev[i].t_ns, ev[i].kind, ev[i].bytes, ev[i].read);
    free(ev);
    add_request(q, &r, id);
    return TL_OK;
}

static bool wanted(tl_cli *c, const json_t *row) {
    const char *id = tl_cli_text(c, "request", NULL);
    if (id != NULL) return tl_str_starts(tl_json_str(row, "id", ""), id);
    return tl_str_eq(tl_json_str(row, "role", ""), "measured");
}

static tl_status none_found(tl_cli *c, const requests *q, const char *run_id, tl_err *e) {
    const char *cell = tl_cli_text(c, "cell", NULL), *request = tl_cli_text(c, "request", NULL);
    if (q->without) {
        tl_status st = tl_fail(e, TL_NOT_FOUND, "run %s: %zu requests are stored without times of their events: nothing to rebuild", run_id, q->without);
        tl_remedy(e, "imported results hold another tool's figures, not its stream; measure with `tally run`");
        return st;
    }
    tl_status st = tl_fail(e, TL_NOT_FOUND, "run %s has no measured request%s%s%s%s", run_id, cell ? " in cell " : "", cell ? cell : "",
                           request ? " with id " : "", request ? request : "");
    tl_remedy(e, "`tally show %s --json` lists the cells; --request takes the beginning of a request's id", run_id);
    return st;
}

static tl_status read_requests(requests *q, tl_cli *c, tl_store *s, const char *run_id, tl_err *e) {
    json_t *rows = NULL, *row;
    size_t i;
    tl_status st = tl_store_requests(&rows, s, run_id, tl_cli_text(c, "cell", NULL), e);
    if (st != TL_OK) return st;
    json_array_foreach(rows, i, row) if (st == TL_OK && wanted(c, row)) st = restore(q, s, row, e);
    json_decref(rows);
    if (st == TL_OK && q->n == 0) st = none_found(c, q, run_id, e);
    return st;
}

/* ---- from a stream file ------------------------------------------------------------------------------------------ */

typedef struct virtual_log {
    tl_buf body;
    tl_http_read *reads;
    size_t n, cap;
} virtual_log;

#define T0 ((uint64_t)1000000000)

static tl_status add_write(virtual_log *v, const json_t *w, const char *path, size_t i, tl_err *e) {
    const json_t *text = json_array_get(w, 1), *ms = json_array_get(w, 0);
    if (!json_is_number(ms) || !json_is_string(text) || json_number_value(ms) < 0 || json_number_value(ms) > 1e9)
        return tl_fail(e, TL_INVALID, "%s: writes[%zu] is not [milliseconds, \"text\"]", path, i);
    uint64_t t = T0 + (uint64_t)llround(json_number_value(ms) * 1e6);
    if (v->n == 0 || v->reads[v->n - 1].t_ns != t) { /* what comes at one moment is one read */
        tl_http_read r = {.t_ns = t, .offset = v->body.len, .wake = (uint32_t)v->n};
        TL_PUSH(v->reads, v->n, v->cap, r);
    }
    tl_buf_add(&v->body, json_string_value(text), json_string_length(text));
    v->reads[v->n - 1].len += (uint32_t)json_string_length(text);
    return TL_OK;
}

static tl_status decode(requests *q, virtual_log *v, const json_t *stream, const char *path, tl_err *e) {
    const char *name = tl_json_str(stream, "dialect", "openai-chat"), *end = tl_json_str(stream, "close", "end");
    const tl_dialect *d = tl_dialect_find(name);
    if (d == NULL) return tl_fail(e, TL_INVALID, "%s: unknown dialect '%s'", path, name);
    bool whole = tl_str_eq(end, "end") || tl_str_eq(end, "length") || tl_str_eq(end, "http10");
    uint64_t first = v->n ? v->reads[0].t_ns : T0, last = v->n ? v->reads[v->n - 1].t_ns : T0;
    tl_http_log log = {.t_intended_ns = T0, .t_connected_ns = T0 - 1, .t_start_ns = T0, .preopened = true, .t_sent_ns = T0, .t_headers_ns = first,
                       .t_first_byte_ns = v->n ? first : 0, .t_close_ns = last, .reads = v->reads, .n_reads = v->n, .body = v->body.p,
                       .body_len = v->body.len, .status = (int)tl_json_int(stream, "status", 200), .http_version = 11, .connects = 1,
                       .outcome = whole ? TL_HTTP_COMPLETE : TL_HTTP_CLOSED_EARLY};
    tl_gen g;
    tl_request r;
    tl_gen_init(&g);
    g.max_tokens = tl_json_int(stream, "request.max_tokens", -1);
    tl_request_init(&r);
    tl_status st = tl_dialect_decode(&r, d, &log, &g, e);
    if (st == TL_OK) add_request(q, &r, tl_json_str(stream, "name", path));
    else tl_request_free(&r);
    return st;
}

static tl_status read_stream(requests *q, const char *path, tl_err *e) {
    tl_status st = TL_OK;
    json_t *stream = NULL, *w;
    virtual_log v = {0};
    tl_buf text;
    size_t i;
    tl_buf_init(&text, 0);
    tl_buf_init(&v.body, 0);
    TRY(tl_file_read(&text, path, (size_t)64 << 20, e));
    TRY(tl_json_parse(&stream, text.p, text.len, path, e));
    if (!json_is_array(tl_json_at(stream, "writes"))) {
        st = tl_fail(e, TL_INVALID, "%s: no list \"writes\" of [milliseconds, \"text\"]", path);
        tl_remedy(e, "tests/engine/streams holds such files");
        goto out;
    }
    json_array_foreach(tl_json_at(stream, "writes"), i, w) TRY(add_write(&v, w, path, i, e));
    TRY(decode(q, &v, stream, path, e));
out:
    json_decref(stream);
    tl_buf_free(&text);
    tl_buf_free(&v.body);
    free(v.reads);
    return st;
}

/* ---- saying it --------------------------------------------------------------------------------------------------- */

static tl_status chosen(const tl_peer **out, tl_cli *c, tl_err *e) {
    const char *name = tl_cli_text(c, "as", "all"), *names[32];
    size_t n = tl_peer_count() < 32 ? tl_peer_count() : 32;
    *out = NULL;
    if (tl_str_eq(name, "all")) return TL_OK;
    *out = tl_peer_find(name);
    if (*out != NULL) return TL_OK;
    tl_buf b;
    tl_buf_init(&b, 0);
    for (size_t i = 0; i < n; i++) {
        names[i] = tl_peer_name(tl_peer_at(i));
        tl_buf_fmt(&b, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = tl_nearest(name, names, n);
    tl_status st = tl_cli_usage(c, e, "--as %s: no such tool%s%s%s; known: all, %s", name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "", b.p);
    tl_buf_free(&b);
    return st;
}

static const char *cell_of(tl_arena *a, const tl_peer_run *r, tl_peer_slot s) {
    const tl_peer_total *t = &r->f[s];
    if (r->words[s] == NULL || t->n == 0 || !isfinite(t->mean)) return "–";
    return tl_arena_printf(a, "%.1f", t->mean);
}

/* A tool with two meanings of a rate shows both. */
static const char *rate_cell(tl_arena *a, const tl_peer_run *r) {
    if (r->words[TL_PEER_RATE2] == NULL || r->f[TL_PEER_RATE2].n == 0) return cell_of(a, r, TL_PEER_RATE);
    return tl_arena_printf(a, "%s or %s", cell_of(a, r, TL_PEER_RATE), cell_of(a, r, TL_PEER_RATE2));
}

static double gap_of(const tl_peer_run *r, tl_peer_slot s) {
    const tl_peer_total *t = &r->f[s];
    return t->n_both ? (double)t->gap_sum / (double)t->n_both / (double)r->grains[s] : 0;
}

/* Adds a figure's gap, and marks its causes. What the table's digits would not show is left out. */
static void gap_part(tl_buf *b, bool on[TL_PEER_CAUSES], const tl_peer_run *r, tl_peer_slot s) {
    static const char *const names[TL_PEER_SLOTS] = {"TTFT", "", "E2E", "TPOT", "", "tok/s", "tok/s", ""};
    const tl_peer_total *t = &r->f[s];
    if (t->n_both == 0) return;
    for (size_t k = 0; k < TL_PEER_CAUSES; k++)
        on[k] = on[k] || fabs((double)t->cause_sum[k] / (double)t->n_both / (double)r->grains[s]) >= 0.05;
    if (fabs(gap_of(r, s)) >= 0.05) tl_buf_fmt(b, "%s%s %+.1f", b->len ? ", " : "", names[s], gap_of(r, s));
}

/* "TTFT -190.0, E2E +50.0, tok/s -28.6: role chunk counted as first token; ..." */
static const char *gap_cell(tl_arena *a, const tl_peer_run *r) {
    if (r->failing == r->requests && r->fails) return tl_arena_printf(a, "fails: %s", r->fails);
    bool rate = fabs(gap_of(r, TL_PEER_RATE)) >= 0.05, on[TL_PEER_CAUSES] = {false};
    if (r->f[TL_PEER_RATE].n == 0 && r->words[TL_PEER_TPOT] == NULL && r->why[TL_PEER_RATE])
        return tl_arena_printf(a, "undefined: %s", r->why[TL_PEER_RATE]);
    tl_buf b;
    tl_buf_init(&b, 0);
    gap_part(&b, on, r, TL_PEER_TTFT);
    gap_part(&b, on, r, TL_PEER_E2E);
    gap_part(&b, on, r, rate ? TL_PEER_RATE : TL_PEER_TPOT);
    if (r->words[TL_PEER_TPOT] == NULL) gap_part(&b, on, r, TL_PEER_RATE2);
    for (size_t k = 0, n = 0; k < TL_PEER_CAUSES; k++)
        if (on[k]) tl_buf_fmt(&b, "%s%s", n++ ? "; " : b.len ? ": " : "causes that cancel out: ", tl_peer_cause_words((tl_peer_cause_id)k));
    if (r->failing) tl_buf_fmt(&b, "%sfails on %zu: %s", b.len ? "; " : "", r->failing, r->fails);
    const char *out = tl_arena_strdup(a, b.len ? b.p : "none");
    tl_buf_free(&b);
    return out;
}

static void print_all(tl_cli *c, const tl_peer_run *runs, size_t n) {
    static const char *const head[] = {"client", "ok", "TTFT ms", "E2E ms", "TPOT ms", "tok/s/user", "n from", "gap to ours"};
    size_t w = TL_COUNT(head);
    const char **t = tl_xalloc((n + 1) * w * sizeof *t);
    tl_arena *a = tl_arena_new();
    memcpy(t, head, sizeof head);
    for (size_t i = 0; i < n; i++) {
        const tl_peer_run *r = &runs[i];
        const char **row = t + (i + 1) * w;
        row[0] = tl_peer_name(r->peer);
        row[1] = tl_arena_printf(a, "%zu/%zu", r->counted_ok, r->requests);
        row[2] = cell_of(a, r, TL_PEER_TTFT);
        row[3] = cell_of(a, r, TL_PEER_E2E);
        row[4] = cell_of(a, r, TL_PEER_TPOT);
        row[5] = rate_cell(a, r);
        row[6] = r->failing == r->requests ? "–" : r->n_from;
        if (r->n_from_other && r->failing < r->requests) row[6] = tl_arena_printf(a, "%s; %zu otherwise", r->n_from, r->n_from_other);
        row[7] = i == 0 ? "" : gap_cell(a, r);
    }
    tl_cli_table(c, t, n + 1, w);
    fprintf(c->out, "\nmeans over the requests that each counts as ok (tally's own headline is the median); \"or\": two meanings of one word; why in full: --as NAME\n");
    tl_arena_free(a);
    free(t);
}

static void print_one(tl_cli *c, const tl_peer_run *r, const tl_peer_figures *first) {
    fprintf(c->out, "%s: %s\n", tl_peer_name(r->peer), tl_peer_snapshot(r->peer));
    fprintf(c->out, "it sums up by: %s\n", tl_peer_aggregate(r->peer));
    fprintf(c->out, "counts as ok: %zu of %zu (tally: %zu)   n from: %s\n", r->counted_ok, r->requests, r->ours_ok, r->n_from ? r->n_from : "–");
    if (r->failing) fprintf(c->out, "fails on %zu of %zu: %s\n", r->failing, r->requests, r->fails);
    for (size_t s = 0; s < TL_PEER_SLOTS; s++) {
        const tl_peer_total *t = &r->f[s];
        if (r->words[s] == NULL) continue;
        fprintf(c->out, "\n%s", r->words[s]);
        if (first->f[s].formula) fprintf(c->out, " = %s", first->f[s].formula);
        if (t->n == 0) {
            fprintf(c->out, "\n  undefined: %s\n", r->why[s] ? r->why[s] : "no request counts");
            continue;
        }
        fprintf(c->out, "\n  mean %.2f  median %.2f  p99 %.2f %s  (%zu requests; ours: median %.2f)\n", t->mean, t->median, t->p99, r->units[s], t->n, t->ours_median);
        if (t->n_both == 0) continue;
        double unit = (double)t->n_both * (double)r->grains[s];
        fprintf(c->out, "  gap to ours %+.2f %s", (double)t->gap_sum / unit, r->units[s]);
        for (size_t k = 0, n = 0; k < TL_PEER_CAUSES; k++)
            if (t->cause_sum[k] != 0)
                fprintf(c->out, "%s%+.2f %s", n++ ? "; " : " = ", (double)t->cause_sum[k] / unit, tl_peer_cause_words((tl_peer_cause_id)k));
        fprintf(c->out, "\n");
    }
    for (size_t i = 0; i < first->n_notes; i++) fprintf(c->out, "%s- %s\n", i == 0 ? "\n" : "", first->notes[i]);
}

static json_t *requests_json(const requests *q, const tl_peer_figures *f) {
    json_t *list = json_array();
    for (size_t i = 0; i < q->n; i++) {
        json_t *j = tl_peer_json(&f[i]);
        json_object_set_new(j, "request", json_string(q->id[i]));
        json_array_append_new(list, j);
    }
    return list;
}

static tl_status say(tl_cli *c, const requests *q, const char *what, const char *name, tl_err *e) {
    const tl_peer *one = NULL;
    tl_status st = chosen(&one, c, e);
    if (st != TL_OK) return st;
    size_t n = one ? 1 : tl_peer_count();
    tl_peer_run *runs = tl_xalloc(n * sizeof *runs);
    tl_peer_figures *f = tl_xalloc(q->n * sizeof *f);
    json_t *tools = json_array();
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < q->n; i++) tl_peer_say(&f[i], one ? one : tl_peer_at(k), &q->r[i]);
        tl_peer_sum(&runs[k], f, q->n);
        if (!c->json) continue;
        json_t *j = tl_peer_run_json(&runs[k]);
        if (one || q->n == 1) json_object_set_new(j, "each", requests_json(q, f));
        json_array_append_new(tools, j);
    }
    if (c->json) {
        json_t *j = json_pack("{s:s, s:s, s:i, s:O}", what, name, "label", "derived", "without_events", (int)q->without, "tools", tools);
        tl_cli_print_json(c, j);
        json_decref(j);
    } else {
        fprintf(c->out, "%s %s: %zu request%s as other tools would say it [derived from their stored times]\n\n", what, name, q->n, q->n == 1 ? "" : "s");
        if (one) print_one(c, &runs[0], &f[0]);
        else print_all(c, runs, n);
    }
    json_decref(tools);
    free(runs);
    free(f);
    return TL_OK;
}

tl_status tl_show_as_run(tl_cli *c, tl_store *s, const char *run_id, tl_err *e) {
    requests q = {0};
    tl_status st = read_requests(&q, c, s, run_id, e);
    if (st == TL_OK) st = say(c, &q, "run", run_id, e);
    requests_free(&q);
    return st;
}

tl_status tl_show_as_stream(tl_cli *c, const char *path, tl_err *e) {
    requests q = {0};
    tl_status st = read_stream(&q, path, e);
    if (st == TL_OK) st = say(c, &q, "stream", path, e);
    requests_free(&q);
    return st;
}
