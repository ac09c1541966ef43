/* How a run, its cells and its values are named on the command line and in reports:
 *   EXPERIMENT[@MACHINE][#RUN][.NAME][{axis=value,...}]    e.g. bandwidth-law.decode_rate{model=large-q4_0}
 * MACHINE is a machine's name or id prefix; RUN a run's prefix; without either, the newest run that is done. A run's prefix
 * may also stand alone, in the place of EXPERIMENT. */
#include "cli/project.h"

#include <ctype.h>

/* Copies characters of `set` (letters, digits and extra) from *p; false when none or too many. */
static bool take(char *out, size_t room, const char **p, const char *extra) {
    size_t n = 0;
    while (isalnum((unsigned char)**p) || (**p && strchr(extra, **p))) {
        if (n + 1 >= room) return false;
        out[n++] = *(*p)++;
    }
    out[n] = 0;
    return n > 0;
}

tl_status tl_pick_parse(tl_pick *x, const char *text, bool need_name, tl_err *e) {
    const char *p = text + strspn(text, " ");
    memset(x, 0, sizeof *x);
    bool ok = take(x->experiment, sizeof x->experiment, &p, "-_");
    if (ok && *p == '@') p++, ok = take(x->machine, sizeof x->machine, &p, "-_");
    if (ok && *p == '#') p++, ok = take(x->run, sizeof x->run, &p, "");
    if (ok && *p == '.') p++, ok = take(x->name, sizeof x->name, &p, "_");
    else if (need_name) ok = false;
    if (ok && *p == '{') {
        const char *begin = p + 1;
        size_t n = strcspn(begin, "}");
        ok = n < sizeof x->selector && begin[n] == '}';
        if (ok) memcpy(x->selector, begin, n), p = begin + n + 1;
    }
    p += strspn(p, " ");
    if (ok && *p == 0) return TL_OK;
    tl_fail(e, TL_INVALID, "'%s' is not an expression (stopped at '%s')", text, p);
    if (need_name) return tl_remedy(e, "write EXPERIMENT.NAME{axis=value}, as in bandwidth-law.decode_rate{model=large-q4_0}");
    return tl_remedy(e, "write EXPERIMENT{axis=value} or EXPERIMENT#RUN{axis=value}, as in bandwidth-law{model=large-q4_0}");
}

/* A run whose ruler was too short measured nothing that may be published. */
static tl_status refuse_invalid(tl_store *s, const char *id, tl_err *e) {
    tl_store_phase phase;
    json_t *show = NULL;
    tl_status st = tl_store_run_state_get(&phase, s, id, e);
    if (st != TL_OK || phase != TL_STORE_INVALID) return st;
    st = tl_store_run_show(&show, s, id, e);
    if (st != TL_OK) return st;
    tl_fail(e, TL_REFUSED, "run %s is INVALID and publishes no numbers: %s", id, tl_json_str(show, "reason", ""));
    st = tl_remedy(e, "run it again under the remedy named: tally run %s", tl_json_str(show, "experiment.name", ""));
    json_decref(show);
    return st;
}

static tl_status newest(char id[65], tl_store *s, const tl_pick *x, tl_err *e) {
    const char *machine = x->machine[0] ? x->machine : NULL;
    tl_status st = tl_store_latest_run(id, s, x->experiment, machine, "done", NULL);
    if (st == TL_NOT_FOUND) st = tl_store_latest_run(id, s, x->experiment, machine, "invalid", NULL);
    if (st == TL_NOT_FOUND && machine == NULL) st = tl_store_find(id, s, "run", x->experiment, e);
    if (st != TL_NOT_FOUND) return st;
    tl_fail(e, TL_NOT_FOUND, "no finished run of '%s'%s%s in %s", x->experiment, machine ? " on machine " : "", x->machine, tl_store_path(s));
    return tl_remedy(e, "run it first: tally run %s", x->experiment);
}

tl_status tl_pick_run(char id[65], tl_store *s, const tl_pick *x, tl_err *e) {
    tl_status st = x->run[0] ? tl_store_find(id, s, "run", x->run, e) : newest(id, s, x, e);
    return st == TL_OK ? refuse_invalid(s, id, e) : st;
}
