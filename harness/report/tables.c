/* Tables of the author: size limits before cmark sees them (large ones make old versions take minutes), rows
 * that GFM would cut silently, and the law for columns: a header with a unit says what its cells are, so
 * numbers below it need sources. Runs before the lint: a header's measured label that its cells bear out is
 * masked here. */
#include "report/report_impl.h"

enum { COLUMNS_MAX = 64, ROWS_MAX = 2000 };

typedef struct cell {
    size_t from, to;
} cell;

/* Splits a row at its unescaped pipes; returns the count (cells beyond the maximum are only counted). */
static size_t split(const char *s, size_t from, size_t to, cell *out) {
    size_t n = 0;
    while (from < to && strchr(" \t>", s[from])) from++;
    while (to > from && strchr(" \t\r", s[to - 1])) to--;
    if (from < to && s[from] == '|') from++;
    if (to > from && s[to - 1] == '|' && !(to - 1 > from && s[to - 2] == '\\')) to--;
    size_t start = from;
    for (size_t i = from; i <= to; i++) {
        if (i < to && s[i] == '\\')
            i++;
        else if (i == to || s[i] == '|') {
            if (n < COLUMNS_MAX) out[n] = (cell){start, i};
            n++;
            start = i + 1;
        }
    }
    return n;
}

static bool delimiter(const char *s, size_t from, size_t to) {
    size_t dashes = 0, pipes = 0;
    for (size_t i = from; i < to; i++) {
        if (!strchr("|:- \t\r>", s[i])) return false;
        dashes += s[i] == '-';
        pipes += s[i] == '|';
    }
    return dashes > 0 && pipes > 0;
}

static char *norm_text(const rep *r, cell c) {
    rep_norm t;
    rep_norm_make(&t, r->text.p + c.from, r->mask + c.from, c.to - c.from, false);
    char *p = tl_xstrdup(t.p);
    rep_norm_free(&t);
    return p;
}

static bool has_unit(const char *p) {
    for (size_t i = 0; p[i]; i++) {
        bool start = i == 0 || strchr(" ([", p[i - 1]) || (unsigned char)p[i - 1] >= 0x80;
        if (start && rep_unit_at(p + i, false)) return true;
    }
    return false;
}

static rep_label label_in(const char *p, bool *noted) {
    rep_label l = REP_NONE;
    size_t n;
    for (const char *q = p; *q && l == REP_NONE; q++) l = rep_label_at(q, &n);
    *noted = strstr(p, "[^") != NULL;
    return l;
}

/* The spans are in order: the first one that does not start before `from`. */
static size_t first_span(const rep *r, size_t from) {
    size_t lo = 0, hi = r->n_spans;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->spans[mid].from < from)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static rep_span *directive_in(rep *r, cell c, size_t *count) {
    rep_span *one = NULL;
    *count = 0;
    for (size_t i = first_span(r, c.from); i < r->n_spans && r->spans[i].from < c.to; i++) {
        rep_span *s = &r->spans[i];
        if ((s->kind == SPAN_VALUE || s->kind == SPAN_BARE) && s->from >= c.from && s->to <= c.to)
            one = s, (*count)++;
    }
    return one;
}

static bool digits(const char *p) {
    for (; *p; p++) {
        if (*p >= '0' && *p <= '9') return true;
    }
    return false;
}

static void body_cell(rep *r, cell c, const char *header, bool *borne_out) {
    bool noted, own_note;
    rep_label head = label_in(header, &noted);
    size_t count;
    rep_span *d = directive_in(r, c, &count);
    char *text = norm_text(r, c);
    for (size_t i = first_span(r, c.from); i < r->n_spans && r->spans[i].from < c.to; i++) {
        rep_span *s = &r->spans[i];
        if (s->to > c.to) continue;
        s->in_table = true;
        if (s->kind == SPAN_BARE && s->header == NULL) s->header = tl_xstrdup(header);
    }
    if (digits(text) || d == NULL) *borne_out = false;
    char *t = text + strspn(text, " ~<>=+-±(");
    bool plain = *t >= '0' && *t <= '9' && t[strspn(t, "0123456789.,+- ±~e()")] == 0;
    label_in(text, &own_note);
    if (plain && has_unit(header) && !(head != REP_NONE && head != REP_MEASURED && noted) && !own_note) {
        rep_problem_add(
            r, c.from,
            "use `~ ...`, or give the column's header its label and a footnote: GB/s【官方】[^name]",
            "the number '%.40s' stands under '%.60s', but has no label and source", t, header);
    }
    free(text);
}

static void hide_measured(rep *r, cell c) {
    for (size_t i = c.from, n; i < c.to; i++) {
        if (rep_label_at(r->text.p + i, &n) == REP_MEASURED) memset(r->mask + i, M_DIRECTIVE, n);
    }
}

/* One table whose header is the line at `from`; returns where it ends. */
static size_t table(rep *r, size_t from, size_t from_end, size_t delim_end) {
    const char *s = r->text.p;
    cell head[COLUMNS_MAX], row[COLUMNS_MAX];
    size_t n = split(s, from, from_end, head), m = split(s, from_end + 1, delim_end, row), rows = 0;
    r->too_big |= n > COLUMNS_MAX;
    if (n > COLUMNS_MAX) rep_problem_add(r, from, "at most 64 columns", "a table with %zu columns", n);
    if (n != m)
        rep_problem_add(r, from, "make them equal",
                        "the table's header has %zu cells, the line below it %zu: this is no table", n, m);
    char *headers[COLUMNS_MAX] = {0};
    bool borne[COLUMNS_MAX];
    if (n > COLUMNS_MAX) n = COLUMNS_MAX;
    for (size_t i = 0; i < n; i++) headers[i] = norm_text(r, head[i]), borne[i] = true;
    size_t at = delim_end + 1;
    while (at < r->text.len) {
        size_t len = strcspn(s + at, "\n");
        if (strspn(s + at, " \t\r") >= len || r->mask[at] == M_CODE) break;
        size_t k = split(s, at, at + len, row);
        if (k > n)
            rep_problem_add(r, at, "a '|' inside a cell is written \\|",
                            "the row has %zu cells, its header %zu: the rest would be lost", k, n);
        for (size_t i = 0; i < k && i < n; i++) body_cell(r, row[i], headers[i], &borne[i]);
        at += len + 1;
        r->too_big |= rows >= ROWS_MAX;
        if (++rows == ROWS_MAX + 1)
            rep_problem_add(r, at - len - 1, "split it", "a table with more than %d rows", ROWS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        if (borne[i] && rows > 0)
            hide_measured(r, head[i]); /* every cell is a directive: value.c compares the labels */
        free(headers[i]);
    }
    return at;
}

void rep_tables(rep *r) {
    const char *s = r->text.p;
    size_t at = r->body;
    while (at < r->text.len) {
        size_t len = strcspn(s + at, "\n"), next = at + len + 1;
        if (next < r->text.len && r->mask[at] != M_CODE && memchr(s + at, '|', len)) {
            size_t dl = strcspn(s + next, "\n");
            if (delimiter(s, next, next + dl)) {
                at = table(r, at, at + len, next + dl);
                continue;
            }
        }
        at = next;
    }
}
