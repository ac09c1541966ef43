/* tally doctor ENDPOINT: what was found is one JSON object; people get three tables of it: the habits of the server's
 * streams, what tally cannot measure because of them, and which other clients fail or mis-measure. */
#include "cli/doctor_endpoint.h"

#include <math.h>

#include "peer/peer.h"
#include "run/endpoint.h"

const tl_option tl_doctor_options[] = {
    {.name = "model", .arg = "NAME", .help = "with ENDPOINT: model to ask for", .otherwise = "none is named"},
    {.name = "dialect", .arg = "NAME", .help = "with ENDPOINT: openai-chat, openai-completion, llamacpp-completion or ollama-chat", .otherwise = "openai-chat"},
    {.name = "requests", .letter = 'r', .arg = "N", .help = "with ENDPOINT: answers to look at; two more are asked for in other ways", .otherwise = "3"},
    {.name = "timeout", .arg = "S", .help = "with ENDPOINT: seconds for each answer", .otherwise = "60"},
    {0}};

/* ---- what was found ------------------------------------------------------------------------------------------------ */

static json_t *ms_json(int64_t ns) { return tl_json_real(ns == TL_NONE ? NAN : (double)ns / 1e6); }

static json_t *answers_json(const tl_endpoint *p) {
    json_t *list = json_array();
    for (size_t i = 0; i < p->n; i++) {
        const tl_endpoint_answer *a = &p->answers[i];
        const char *asked = a->ask & TL_ASK_PLAIN ? "plain" : a->ask & TL_ASK_GZIP ? "gzip" : "no-usage";
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:o, s:o, s:I, s:s, s:o, s:I, s:I, s:s?}", "asked", asked, "outcome",
                                              tl_outcome_name(a->m.outcome), "http_status", a->r.http_status, "ttft_ms", ms_json(a->m.ttft_ns),
                                              "e2e_ms", ms_json(a->m.e2e_ns), "tokens", (json_int_t)a->m.n, "tokens_from",
                                              tl_n_source_name(a->m.n_source), "decode_rate", tl_json_real(a->m.decode_rate), "chunks",
                                              (json_int_t)a->m.chunks, "reads", (json_int_t)a->r.reads, "error", a->r.error_text));
    }
    return list;
}

static void look_for_habits(json_t *habits, json_t *limits, const tl_endpoint *p) {
    const tl_endpoint_habit *h;
    for (size_t i = 0; (h = tl_endpoint_habit_at(i)) != NULL; i++) {
        const char *name = tl_endpoint_habit_name(h), *words = tl_endpoint_habit_words(h), *limit = tl_endpoint_habit_limit(h);
        tl_buf evidence;
        tl_buf_init(&evidence, 0);
        const tl_seen s = tl_endpoint_habit_look(&evidence, h, p->answers, p->n);
        json_array_append_new(habits, json_pack("{s:s, s:s, s:s, s:s}", "habit", name, "words", words, "state", tl_seen_name(s), "evidence", evidence.p));
        if (s == TL_SEEN && limit) json_array_append_new(limits, json_pack("{s:s, s:s, s:s}", "habit", name, "words", words, "limit", limit));
        tl_buf_free(&evidence);
    }
}

/* "fails", "mis-measures", "is limited" or "as tally". */
static const char *verdict_of(const json_t *findings) {
    const char *verdict = "as tally";
    size_t i;
    json_t *f;
    json_array_foreach((json_t *)findings, i, f) {
        const char *kind = tl_json_str(f, "kind", "");
        if (tl_str_eq(kind, "fails")) return "fails";
        if (!tl_str_eq(kind, "note")) verdict = "mis-measures";
        else if (i == 0) verdict = "is limited";
    }
    return verdict;
}

static json_t *clients_json(const tl_endpoint *p) {
    json_t *list = json_array();
    tl_peer_figures *f = tl_xalloc(p->n_plain * sizeof *f);
    for (size_t k = 1; k < tl_peer_count(); k++) { /* the first is tally */
        const tl_peer *tool = tl_peer_at(k);
        if (!tl_peer_is_client(tool)) continue;
        for (size_t i = 0; i < p->n_plain; i++) tl_peer_say(&f[i], tool, &p->answers[i].r);
        json_t *findings = tl_peer_on_stream(f, p->n_plain);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:o}", "client", tl_peer_name(tool), "read_in", tl_peer_snapshot(tool), "verdict",
                                              verdict_of(findings), "label", "derived", "findings", findings));
    }
    free(f);
    return list;
}

static json_t *found(const tl_endpoint *p, const tl_endpoint_spec *spec) {
    json_t *habits = json_array(), *limits = json_array();
    look_for_habits(habits, limits, p);
    return json_pack("{s:s, s:s, s:s?, s:s, s:I, s:o, s:o, s:o, s:o}", "endpoint", p->url, "dialect", tl_dialect_name(spec->dialect), "model",
                     spec->model, "label", "measured", "looked_at", (json_int_t)p->n_plain, "answers", answers_json(p), "habits", habits, "limits", limits,
                     "clients", clients_json(p));
}

/* ---- saying it ----------------------------------------------------------------------------------------------------- */

/* Median of a number of the plain answers; NAN when none has it. */
static double median_of(const json_t *found, const char *name) {
    const json_t *answers = json_object_get(found, "answers");
    const size_t n = (size_t)tl_json_int(found, "looked_at", 0);
    double *x = tl_xalloc((n + 1) * sizeof *x);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = tl_json_num(json_array_get(answers, i), name, NAN);
        if (isfinite(v)) x[k++] = v;
    }
    const double m = tl_stat_median(x, k);
    free(x);
    return m;
}

static void print_head(tl_cli *c, const json_t *j) {
    const double ttft = median_of(j, "ttft_ms"), e2e = median_of(j, "e2e_ms"), n = median_of(j, "tokens"), rate = median_of(j, "decode_rate");
    const int64_t looked = tl_json_int(j, "looked_at", 0);
    fprintf(c->out, "%s: %" PRId64 " answer%s asked for as every client does, one without usage, one with gzip offered\n", tl_json_str(j, "endpoint", ""),
            looked, looked == 1 ? "" : "s");
    if (isfinite(ttft)) fprintf(c->out, "TTFT %.1f ms, last text after %.1f ms, %.0f tokens", ttft, e2e, n);
    if (isfinite(rate)) fprintf(c->out, ", %.1f tok/s", rate);
    if (isfinite(ttft)) fprintf(c->out, " (medians of %" PRId64 ") [measured]\n", looked);
}

/* What was seen comes first. */
static void print_habits(tl_cli *c, const json_t *j) {
    static const tl_seen order[] = {TL_SEEN, TL_SEEN_UNTOLD, TL_SEEN_NOT};
    const json_t *habits = json_object_get(j, "habits");
    const char **t = tl_xalloc((json_array_size(habits) + 1) * 3 * sizeof *t);
    size_t n = 0, i;
    json_t *h;
    t[n++] = "habit of its streams [measured]", t[n++] = "state", t[n++] = "evidence";
    for (size_t k = 0; k < TL_COUNT(order); k++)
        json_array_foreach(habits, i, h) {
            if (!tl_str_eq(tl_json_str(h, "state", ""), tl_seen_name(order[k]))) continue;
            t[n++] = tl_json_str(h, "words", ""), t[n++] = tl_json_str(h, "state", ""), t[n++] = tl_json_str(h, "evidence", "");
        }
    fputc('\n', c->out);
    tl_cli_table(c, t, n / 3, 3);
    free(t);
}

static void print_limits(tl_cli *c, const json_t *j) {
    const json_t *limits = json_object_get(j, "limits");
    size_t i;
    json_t *l;
    if (json_array_size(limits) == 0) fprintf(c->out, "\nNothing of this stands in the way of measuring it with tally.\n");
    else fprintf(c->out, "\nWhat tally cannot measure here:\n");
    json_array_foreach(limits, i, l) fprintf(c->out, "%s\n  → %s\n", tl_json_str(l, "words", ""), tl_json_str(l, "limit", ""));
}

/* A line a finding; the client and the verdict stand on its first. */
static size_t add_client(const char **t, const json_t *client) {
    const json_t *findings = json_object_get(client, "findings");
    size_t n = 0, i;
    json_t *f;
    json_array_foreach(findings, i, f) {
        t[n++] = i == 0 ? tl_json_str(client, "client", "") : "";
        t[n++] = i == 0 ? tl_json_str(client, "verdict", "") : "";
        t[n++] = tl_json_str(f, "text", "");
    }
    return n;
}

static void print_clients(tl_cli *c, const json_t *j) {
    const json_t *clients = json_object_get(j, "clients");
    size_t n = 0, lines = 1, i;
    json_t *client;
    tl_buf same;
    tl_buf_init(&same, 0);
    json_array_foreach(clients, i, client) lines += json_array_size(json_object_get(client, "findings"));
    const char **t = tl_xalloc(lines * 3 * sizeof *t);
    t[n++] = "other client", t[n++] = "verdict", t[n++] = "on these answers, because of these habits [derived from their times]";
    json_array_foreach(clients, i, client) {
        const size_t k = add_client(t + n, client);
        if (k == 0) tl_buf_fmt(&same, "%s%s", same.len ? ", " : "", tl_json_str(client, "client", ""));
        n += k;
    }
    fputc('\n', c->out);
    if (n > 3) tl_cli_table(c, t, n / 3, 3);
    if (same.len) fprintf(c->out, "%sas tally, but for their own definitions: %s\n", n > 3 ? "\n" : "", same.p);
    fprintf(c->out, "by their sources as read (`tally show RUN --as NAME` names the revision, and their definitions); a real client adds its own error\n");
    tl_buf_free(&same);
    free(t);
}

/* ---- verb ---------------------------------------------------------------------------------------------------------- */

static tl_status choose(tl_endpoint_spec *spec, tl_cli *c, tl_err *e) {
    const char *dialect = tl_cli_text(c, "dialect", "openai-chat");
    int64_t requests, timeout;
    size_t n;
    tl_status st = tl_cli_int(&requests, c, "requests", 3, 1, 100, e);
    if (st == TL_OK) st = tl_cli_int(&timeout, c, "timeout", 60, 1, 3600, e);
    if (st != TL_OK) return st;
    *spec = (tl_endpoint_spec){.url = c->args[0], .dialect = tl_dialect_find(dialect), .model = tl_cli_text(c, "model", NULL), .key = tl_env("TALLY_API_KEY"),
                               .requests = (size_t)requests, .timeout_ns = (uint64_t)timeout * TL_S, .cancelled = tl_cli_cancelled};
    if (strchr(spec->url, ':') == NULL) return tl_cli_usage(c, e, "'%s' is no address: http://HOST:PORT or HOST:PORT", spec->url);
    if (spec->dialect != NULL) return TL_OK;
    const char *const *names = tl_dialect_names(&n), *near = tl_nearest(dialect, names, n);
    return tl_cli_usage(c, e, "--dialect %s: no such dialect%s%s%s", dialect, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

tl_status tl_doctor_endpoint(tl_cli *c, tl_err *e) {
    tl_endpoint_spec spec;
    tl_endpoint p = {0};
    json_t *j = NULL;
    tl_status st = TL_OK;
    TRY(choose(&spec, c, e));
    TRY(tl_endpoint_look(&p, &spec, e));
    j = found(&p, &spec);
    if (c->json) tl_cli_print_json(c, j);
    else {
        print_head(c, j);
        print_habits(c, j);
        print_limits(c, j);
        print_clients(c, j);
    }
out:
    json_decref(j);
    tl_endpoint_free(&p);
    return st;
}
