/* Reading the source text: which bytes are code, links, footnote texts, directives. This is our own reading,
 * by bytes, because cmark's positions of inline nodes cannot be trusted; html.c counts directives in the
 * parse tree as well, and a difference is a problem that is shown, never a directive that is silently lost.
 */
#include "report/report_impl.h"

static bool blank(const char *p, size_t n) {
    return strspn(p, " \t\r>") >= n;
}

/* Length of a code fence that starts this line, its byte in *mark, where it starts in *at. */
static size_t fence(const char *p, size_t n, char *mark, size_t *at) {
    size_t i = 0;
    while (i < n && strchr(" >-*+0123456789.\t", p[i]))
        i++; /* also in quotes and lists: code there is code too */
    if (i >= n || (p[i] != '`' && p[i] != '~')) return 0;
    size_t k = i;
    while (k < n && p[k] == p[i]) k++;
    if (k - i < 3 || (p[i] == '`' && memchr(p + k, '`', n - k))) return 0;
    *mark = p[i];
    *at = i;
    return k - i;
}

static void span_add(rep *r, rep_kind kind, size_t from, size_t to, char *expr) {
    if (r->n_spans == REP_SPANS_MAX) {
        rep_problem_add(r, from, "split the report", "more than %d directives", REP_SPANS_MAX);
        r->too_big = true;
    }
    TL_PUSH(r->spans, r->n_spans, r->cap_spans,
            ((rep_span){.kind = kind, .from = from, .to = to, .expr = expr, .item = SIZE_MAX}));
}

static void block_found(rep *r, size_t from, size_t info, size_t info_n, size_t text, size_t text_n,
                        size_t to) {
    static const char *const kinds[] = {"figure", "table", "formula", "rerun", "ledger", "menu", "mermaid"};
    static const char *const languages[] = {"lua",     "sh",   "bash",   "c",        "json",  "text", "sql",
                                            "console", "diff", "python", "make",     "cmake", "xml",  "html",
                                            "http",    "toml", "yaml",   "markdown", "md",    "tsv",  "csv"};
    const char *s = r->text.p;
    while (info_n > 0 && strchr(" \t\r", s[info + info_n - 1])) info_n--;
    while (info_n > 0 && strchr(" \t", s[info])) info++, info_n--;
    char *line = tl_xstrndup(s + info, info_n);
    char *word = tl_xstrndup(line, strcspn(line, " \t"));
    const char *kind = NULL;
    if (rep_block_known(word, &kind)) {
        if (s[from] != '`' && s[from] != '~') {
            rep_problem_add(r, from, "start it in the first column",
                            "a %s block stands inside a list or a quote", kind);
        }
        span_add(r, SPAN_BLOCK, from, to, tl_xstrdup(word));
        rep_span *sp = &r->spans[r->n_spans - 1];
        sp->text = tl_xstrndup(s + text, text_n);
        rep_block_attrs(r, sp, line + strlen(word));
        memset(r->mask + from, M_DIRECTIVE, to - from);
    } else if (*word) {
        bool language = strcmp(word, "mermaid") == 0;
        for (size_t i = 0; i < TL_COUNT(languages); i++) language |= strcmp(word, languages[i]) == 0;
        const char *near = tl_nearest(word, kinds, TL_COUNT(kinds));
        if (!language && (near != NULL || strstr(line, "id=") != NULL)) {
            char *hint = near ? tl_xprintf("did you mean '%s'?", near) : NULL;
            rep_problem_add(r, from, hint ? hint : "known are figure, table, formula, rerun, ledger, menu",
                            "unknown block '%.40s'", word);
            free(hint);
        }
    }
    free(word);
    free(line);
}

/* Masks fenced blocks, and finds those that are ours. */
static void fences(rep *r) {
    const char *s = r->text.p;
    size_t n = r->text.len, at = r->body;
    while (at < n) {
        size_t len = strcspn(s + at, "\n"), f, where = 0;
        char mark = 0;
        if ((f = fence(s + at, len, &mark, &where)) == 0) {
            at += len + (at + len < n);
            continue;
        }
        size_t from = at, text = at + len + (at + len < n), end = text, stop = n;
        size_t info = at + where + f, info_n = at + len - info;
        at = text;
        bool closed = false;
        while (at < n && !closed) {
            size_t l = strcspn(s + at, "\n"), g, w = 0;
            char m = 0;
            g = fence(s + at, l, &m, &w);
            closed = g >= f && m == mark && blank(s + at + w + g, l - w - g);
            end = at;
            stop = at + l;
            at += l + (at + l < n);
        }
        if (!closed) {
            rep_problem_add(r, from, "close it with the same fence", "a code block does not end");
            end = stop = n;
        }
        memset(r->mask + from, M_CODE, stop - from);
        block_found(r, from, info, info_n, text, end - text, stop);
    }
}

static void directive_found(rep *r, size_t from, size_t to, size_t ticks) {
    const char *s = r->text.p;
    size_t a = from + ticks, b = to - ticks;
    if (b - a < 2 || (s[a] != '=' && s[a] != '~') || s[a + 1] != ' ') return;
    char *expr = tl_xstrndup(s + a + 2, b - a - 2);
    size_t k = strlen(expr), lead = strspn(expr, " ");
    while (k > lead && expr[k - 1] == ' ') expr[--k] = 0;
    memmove(expr, expr + lead, k - lead + 1);
    if (*expr == 0 || strpbrk(expr, "|\n\r") != NULL) {
        rep_problem_add(r, from, "write `= NAME` on one line, without '|'",
                        "'%.60s' is not a value expression", expr);
    }
    span_add(r, s[a] == '=' ? SPAN_VALUE : SPAN_BARE, from, to, expr);
    memset(r->mask + from, M_DIRECTIVE, to - from);
}

/* Code spans of one block of text, from and to are its bytes. */
static void code_spans(rep *r, size_t from, size_t to) {
    const char *s = r->text.p;
    for (size_t i = from; i < to;) {
        if (s[i] == '\\') {
            i += 2;
            continue;
        }
        if (s[i] != '`') {
            i++;
            continue;
        }
        size_t n = 0, j, k = 0;
        while (i + n < to && s[i + n] == '`') n++;
        for (j = i + n; j < to; j += k ? k : 1) {
            for (k = 0; j + k < to && s[j + k] == '`';) k++;
            if (k == n) break;
        }
        if (j >= to) {
            i += n;
            continue;
        }
        memset(r->mask + i, M_CODE, j + n - i);
        directive_found(r, i, j + n, n);
        i = j + n;
    }
}

static void mark(rep *r, size_t from, size_t to, char what) {
    for (size_t i = from; i < to; i++) {
        if (r->mask[i] == M_PROSE) r->mask[i] = what;
    }
}

static void links(rep *r, size_t from, size_t to) {
    const char *s = r->text.p;
    for (size_t i = from; i < to; i++) {
        if (r->mask[i] != M_PROSE) continue;
        size_t end = i;
        if (s[i] == ']' && i + 1 < to && s[i + 1] == '(') {
            end = i + 1;
            while (end < to && s[end] != ')' && s[end] != '\n') end++;
        } else if (tl_str_starts(s + i, "http://") || tl_str_starts(s + i, "https://")) {
            while (end < to && (unsigned char)s[end] > 0x20 && (unsigned char)s[end] < 0x7f &&
                   !strchr("<>\"'`|", s[end]))
                end++;
        }
        if (end > i) mark(r, i, end, M_LINK), i = end - 1;
    }
}

/* Does this line start a block of its own, so that no code span reaches into it? */
static bool starts_block(const char *p, size_t n) {
    size_t i = strspn(p, " \t");
    if (i >= n) return true;
    return strchr("#>|", p[i]) || (strchr("-*+", p[i]) && p[i + 1] == ' ') ||
           (p[i] >= '0' && p[i] <= '9' && strspn(p + i, "0123456789") < 10 &&
            strchr(".)", p[i + strspn(p + i, "0123456789")])) ||
           (p[i] == '[' && p[i + 1] == '^');
}

static void text_block(rep *r, size_t from, size_t to) {
    const char *s = r->text.p;
    size_t lead = strspn(s + from, " ");
    code_spans(r, from, to);
    links(r, from, to);
    rep_emphasis(r, from, to);
    if (lead <= 3 && s[from + lead] == '[' && s[from + lead + 1] == '^') {
        size_t i = from + lead + 2;
        while (i < to && s[i] != ']' && s[i] != '\n') i++;
        if (i + 1 < to && s[i] == ']' && s[i + 1] == ':') mark(r, i + 2, to, M_NOTE);
    }
}

void rep_scan(rep *r) {
    static const char *const reserved[] = {"\xee\x80\x80", "\xee\x80\x82", "\xee\x80\x83"};
    const char *s = r->text.p;
    for (size_t i = 0; i < TL_COUNT(reserved); i++) {
        const char *p = strstr(s, reserved[i]);
        if (p) rep_problem_add(r, (size_t)(p - s), "take it out", "a character of the private use area");
    }
    fences(r);
    size_t from = r->body, at = r->body, n = r->text.len;
    bool open = false;
    while (at <= n) {
        size_t len = at < n ? strcspn(s + at, "\n") : 0;
        bool code = at < n && r->mask[at] != M_PROSE,
             end = at >= n || code || blank(s + at, len) || starts_block(s + at, len);
        if (end && open && at > from) text_block(r, from, at);
        if (end) open = false;
        if (at >= n) break;
        if (!open && !code && !blank(s + at, len)) open = true, from = at;
        at += len + 1;
    }
}
