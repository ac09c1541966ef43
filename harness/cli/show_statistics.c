/* What the samples of a run can bear, for people: percentiles with their intervals, and warnings. */
#include "cli/project.h"
#include "cli/show_as.h"

#include <math.h>

/* "412 [398–431]", or how many samples it needs. */
static const char *quantile(tl_arena *a, const json_t *q) {
    double x = tl_json_num(q, "value", NAN), lo = tl_json_num(q, "lo", NAN), hi = tl_json_num(q, "hi", NAN);
    if (!isfinite(x)) return tl_arena_printf(a, "needs n ≥ %" PRId64, tl_json_int(q, "n_needed", 0));
    int digits = fabs(x) >= 100 ? 0 : fabs(x) >= 10 ? 1 : 2;
    return tl_arena_printf(a, "%.*f [%.*f–%.*f]", digits, x, digits, lo, digits, hi);
}

void tl_show_percentiles(tl_cli *c, const json_t *statistics, tl_show_cell_name *name, const json_t *show) {
    static const char *const head[] = {"cell", "metric", "n", "p50", "p90", "p95", "p99"};
    size_t n = 0, w = TL_COUNT(head), i, k;
    const char **t = tl_xalloc((json_array_size(statistics) + 1) * w * sizeof *t);
    tl_arena *a = tl_arena_new();
    json_t *s, *q;
    memcpy(t, head, sizeof head);
    json_array_foreach((json_t *)statistics, i, s) {
        if (json_array_size(json_object_get(s, "quantiles")) == 0) continue; /* about answers as such */
        const char **row = t + ++n * w;
        row[0] = name(show, tl_json_str(s, "cell", ""));
        row[1] = tl_arena_printf(a, "%s %s", tl_json_str(s, "metric", ""), tl_json_str(s, "unit", ""));
        row[2] = tl_arena_printf(a, "%" PRId64, tl_json_int(s, "n", 0));
        json_array_foreach(json_object_get(s, "quantiles"), k, q) if (3 + k < w) row[3 + k] = quantile(a, q);
    }
    fprintf(c->out, "\npercentiles of requests, nearest rank, with 95 %% intervals by order statistics [measured]\n");
    tl_cli_table(c, t, n + 1, w);
    tl_arena_free(a);
    free(t);
}

/* Outliers are common and kept: one line for all of them. */
static void print_outliers(tl_cli *c, const json_t *statistics, tl_show_cell_name *name, const json_t *show) {
    size_t i, k, lines = 0;
    json_t *s, *warning;
    json_array_foreach((json_t *)statistics, i, s)
        json_array_foreach(json_object_get(s, "warnings"), k, warning) {
            if (!tl_str_eq(tl_json_str(warning, "name", ""), "outliers")) continue;
            fprintf(c->out, "%s%s, %s %" PRId64 " of %" PRId64, lines++ ? "; " : "  outliers, kept in every number: ", name(show, tl_json_str(s, "cell", "")),
                    tl_json_str(s, "metric", ""), tl_json_int(warning, "values", 0), tl_json_int(s, "n", 0));
        }
    if (lines > 0) fprintf(c->out, ". Check for other load on the machine.\n");
}

void tl_show_warnings(tl_cli *c, const json_t *statistics, tl_show_cell_name *name, const json_t *show) {
    size_t i, k, any = 0;
    json_t *s, *warning;
    json_array_foreach((json_t *)statistics, i, s) {
        const char *metric = tl_json_str(s, "metric", "");
        json_array_foreach(json_object_get(s, "warnings"), k, warning) {
            if (any++ == 0) fprintf(c->out, "\nwarnings\n");
            if (tl_str_eq(tl_json_str(warning, "name", ""), "outliers")) continue;
            fprintf(c->out, "  %s%s%s: %s\n", name(show, tl_json_str(s, "cell", "")), tl_str_eq(metric, "answers") ? "" : ", ",
                    tl_str_eq(metric, "answers") ? "" : metric, tl_json_str(warning, "text", ""));
        }
    }
    print_outliers(c, statistics, name, show);
}
