/* Front matter: "---", lines "key: value", "---". Not YAML: one kind of line, so that there is nothing to
 * misread. */
#include "report/report_impl.h"

static void line(rep *r, char *p, size_t from) {
    static const char *const keys[] = {"title",    "lang",   "experiment",  "day",   "map",
                                       "subtitle", "series", "description", "needs", "report"};
    if (*p == 0 || *p == '#') return;
    char *colon = strchr(p, ':');
    if (colon == NULL) {
        rep_problem_add(r, from, "write it as key: value", "front matter: '%.60s' has no ':'", p);
        return;
    }
    *colon = 0;
    char *v = colon + 1;
    while (*v == ' ') v++;
    size_t n = strlen(v);
    while (n > 0 && (v[n - 1] == ' ' || v[n - 1] == '\r')) v[--n] = 0;
    if (n >= 2 && (*v == '"' || *v == '\'') && v[n - 1] == *v) v[n - 1] = 0, v++;
    bool known = false;
    for (size_t i = 0; i < TL_COUNT(keys); i++) known |= strcmp(p, keys[i]) == 0;
    if (!known) {
        const char *near = tl_nearest(p, keys, TL_COUNT(keys));
        char *hint = near ? tl_xprintf("did you mean '%s'?", near) : NULL;
        rep_problem_add(
            r, from,
            hint ? hint : "known are title, lang, experiment, day, map, subtitle, series, description, needs",
            "front matter: unknown key '%.60s'", p);
        free(hint);
    } else if (json_object_get(r->front, p) != NULL) {
        rep_problem_add(r, from, "keep one of the two", "front matter: '%s' is given twice", p);
    } else {
        json_object_set_new(r->front, p, json_string(v));
    }
}

void rep_front(rep *r) {
    const char *s = r->text.p;
    r->front = json_object();
    r->w = rep_words_of("en");
    if (strncmp(s, "---\n", 4) != 0 && strncmp(s, "---\r\n", 5) != 0) {
        rep_problem_add(r, 0, "begin the file with ---, title: ..., lang: ..., ---",
                        "the report has no front matter");
        return;
    }
    size_t at = strcspn(s, "\n") + 1;
    bool closed = false;
    while (s[at] != 0 && !closed) {
        size_t n = strcspn(s + at, "\n");
        char *copy = tl_xstrndup(s + at, n);
        if (n > 0 && copy[n - 1] == '\r') copy[n - 1] = 0;
        closed = strcmp(copy, "---") == 0;
        if (!closed) line(r, copy, at);
        free(copy);
        at += n + (s[at + n] == '\n');
    }
    if (!closed) rep_problem_add(r, 0, "end it with a line ---", "the front matter does not end");
    r->body = at;
    memset(r->mask, M_FRONT, at);
    const char *lang = tl_json_str(r->front, "lang", "en");
    if (tl_json_str(r->front, "title", "")[0] == 0)
        rep_problem_add(r, 0, "add title: ...", "front matter: no title");
    if (rep_words_of(lang) == NULL) {
        rep_problem_add(r, 0, "zh-Hant, zh-Hans or en", "front matter: lang '%.40s' is not known", lang);
        return;
    }
    r->w = rep_words_of(lang);
    static const char *const printed[] = {"title", "subtitle", "description", "series", "needs"};
    for (size_t i = 0; i < TL_COUNT(printed); i++)
        rep_lint_text(r, tl_json_str(r->front, printed[i], ""), 0, printed[i]);
}
