/* JSON in the ways in which tools write it: one object, a list, an object a line, one after another. Objects are found by
 * their braces and parsed one by one, so that a broken one costs only itself and a cut file still has its whole ones. */
#include "import/import_impl.h"

#include <ctype.h>

/* The end of the object that begins at `at`, behind its brace; 0 when `limit` comes first, or when a string holds a line end:
 * *broken is where. */
static size_t object_end(const imp_text *t, size_t at, size_t limit, size_t *broken) {
    size_t depth = 0;
    bool string = false;
    for (size_t i = at; i < limit; i++) {
        char c = t->p[i];
        if (string && c == '\\') i++;
        else if (c == '"') string = !string;
        else if (string && c == '\n') return *broken = i, 0;
        else if (!string && (c == '{' || c == '[')) depth++;
        else if (!string && (c == '}' || c == ']') && --depth == 0) return i + 1;
    }
    return *broken = limit, 0;
}

static size_t line_end(const imp_text *t, size_t at) {
    const char *nl = at < t->len ? memchr(t->p + at, '\n', t->len - at) : NULL;
    return nl ? (size_t)(nl - t->p) : t->len;
}

static void add_object(imp_text *t, int64_t line, size_t at, size_t end) {
    tl_err e = {0};
    json_t *j = NULL;
    if (imp_json(&j, t->p + at, end - at, &e) != TL_OK) imp_add(t, line, NULL, e.msg);
    else imp_add(t, line, j, NULL);
}

static size_t skip_blank(const imp_text *t, size_t at, const char *more) {
    while (at < t->len && (isspace((unsigned char)t->p[at]) || (t->p[at] && strchr(more, t->p[at])))) at++;
    return at;
}

/* An object a line. A line that breaks off costs its row alone, unless it is the last one without a line end. */
static void cut_lines(imp_text *t, size_t at, int64_t line) {
    t->form = "JSON lines";
    for (size_t end; at < t->len; at = end + 1, line++) {
        end = line_end(t, at);
        size_t from = at, broken;
        while (from < end && isspace((unsigned char)t->p[from])) from++;
        if (from == end) continue;
        if (t->p[from] != '{') {
            imp_other(t, line, t->p + from, end - from);
            continue;
        }
        size_t stop = object_end(t, from, end, &broken);
        if (stop > 0) {
            add_object(t, line, from, stop);
            size_t rest = skip_blank(t, stop, "");
            if (rest < end) imp_other(t, line, t->p + rest, end - rest);
        } else if (end == t->len) {
            t->lost = tl_xprintf("the object in line %" PRId64, line);
        } else imp_add(t, line, NULL, "the object does not end in its line");
    }
    if (t->n == 1) t->form = "JSON";
}

/* A list, or objects over several lines, one after another. */
static void cut_many(imp_text *t, size_t at, bool list) {
    t->form = "JSON";
    if (list) at++;
    while ((at = skip_blank(t, at, list ? "," : "")) < t->len) {
        int64_t line = imp_line_of(t, at);
        size_t broken = 0, end;
        if (t->p[at] == '{' && (end = object_end(t, at, t->len, &broken)) > 0) {
            add_object(t, line, at, end);
            at = end;
        } else if (t->p[at] == '{') {
            t->lost = tl_xprintf("the object that begins in line %" PRId64, line);
            if (broken < t->len) { /* not cut but broken: nothing behind it can be trusted */
                imp_add(t, line, NULL, "a text in it holds a line end");
                free(t->lost);
                t->lost = tl_xprintf("the text behind line %" PRId64 ", which follows a broken object", imp_line_of(t, broken));
            }
            return;
        } else if (list && t->p[at] == ']') {
            list = false;
            at++;
        } else {
            end = line_end(t, at);
            imp_other(t, line, t->p + at, end - at);
            at = end;
        }
    }
    if (list) t->lost = tl_xstrdup("the list, which is not closed");
}

bool imp_cut_objects(imp_text *t) {
    size_t at = 0, end;
    int64_t line = 1;
    for (; at < t->len; at = end + 1, line++) { /* what was printed before the first object */
        end = line_end(t, at);
        size_t from = at;
        while (from < end && isspace((unsigned char)t->p[from])) from++;
        if (from == end) continue;
        size_t inside = skip_blank(t, from + 1, "");
        bool list = t->p[from] == '[' && (inside == t->len || t->p[inside] == '{' || t->p[inside] == ']');
        if (list || t->p[from] == '{') {
            size_t broken, stop = list ? 0 : object_end(t, from, end, &broken);
            if (stop > 0) cut_lines(t, at, line);
            else cut_many(t, from, list);
            return true;
        }
        imp_other(t, line, t->p + from, end - from);
    }
    return false;
}

/* NaN, Infinity and -Infinity outside of strings are put in quotes. */
static void quote_words(tl_buf *b, const char *p, size_t n) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    bool string = false;
    for (size_t i = 0; i < n; i++) {
        size_t w = string ? TL_COUNT(words) : 0, k = 0;
        for (; w < TL_COUNT(words); w++)
            if (n - i >= (k = strlen(words[w])) && memcmp(p + i, words[w], k) == 0) break;
        if (w < TL_COUNT(words)) {
            tl_buf_fmt(b, "\"%s\"", words[w]);
            i += k - 1;
            continue;
        }
        tl_buf_char(b, p[i]);
        if (string && p[i] == '\\' && i + 1 < n) tl_buf_char(b, p[++i]);
        else if (p[i] == '"') string = !string;
    }
}

tl_status imp_json(json_t **out, const char *p, size_t n, tl_err *e) {
    tl_status st = tl_json_parse(out, p, n, "object", e);
    if (st != TL_OK) { /* rarely, and then mostly for one of the words */
        tl_buf b;
        tl_buf_init(&b, 0);
        quote_words(&b, p, n);
        st = tl_json_parse(out, b.p, b.len, "object", e);
        tl_buf_free(&b);
    }
    if (st == TL_OK && !json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        st = tl_fail(e, TL_INVALID, "not an object");
    }
    return st;
}
