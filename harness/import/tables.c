/* Tables as text: CSV, Markdown, and INSERT statements. A table is found by a header whose names a tool knows, so that
 * whatever was printed around it or into it is told apart and reported. Values are texts; a row's reader gives them types. */
#include "import/import_impl.h"

typedef struct cells {
    char **v;
    size_t n, cap;
    bool sure; /* the last cell is closed: nothing of it can be missing at the end of a cut text */
} cells;

static void cells_clear(cells *c) {
    for (size_t i = 0; i < c->n; i++) free(c->v[i]);
    free(c->v);
    *c = (cells){0};
}

static void push(cells *c, const char *p, size_t n) {
    char *s = tl_xstrndup(p, n);
    TL_PUSH(c->v, c->n, c->cap, s);
}

/* An object of names and values. NULL: two names are the same, or one is empty. */
static json_t *zip(const cells *names, const cells *values) {
    json_t *o = json_object();
    for (size_t i = 0; i < names->n; i++) {
        if (names->v[i][0] == 0 || json_object_get(o, names->v[i]) != NULL) {
            json_decref(o);
            return NULL;
        }
        json_object_set_new(o, names->v[i], json_string(values->v[i]));
    }
    return o;
}

static bool is_header(const cells *c) {
    if (!imp_known((const char *const *)c->v, c->n)) return false;
    json_t *o = zip(c, c);
    json_decref(o);
    return o != NULL;
}

/* A row of a table with a known header; `last`: the text ends behind it without a line end. */
static void add_row(imp_text *t, int64_t line, const cells *header, const cells *row, bool last) {
    char why[96];
    if (last && (!row->sure || row->n != header->n)) t->lost = tl_xprintf("line %" PRId64, line);
    else if (row->n != header->n) {
        snprintf(why, sizeof why, "%zu values where the header has %zu", row->n, header->n);
        imp_add(t, line, NULL, why);
    } else {
        json_t *fields = zip(header, row);
        imp_add(t, line, fields, fields ? NULL : "a name in its header is empty or stands there twice");
    }
}

/* One line without its end. */
typedef struct line {
    const char *p;
    size_t n;
    int64_t no;
    bool last; /* no line end follows */
} line;

static bool next_line(const imp_text *t, line *l) {
    size_t at = l->p ? (size_t)(l->p - t->p) + l->n : 0;
    if (l->p != NULL) { /* behind the line end of the line before */
        at += at < t->len && t->p[at] == '\r';
        at += at < t->len && t->p[at] == '\n';
    }
    if (at >= t->len) return false;
    const char *nl = memchr(t->p + at, '\n', t->len - at);
    l->last = nl == NULL;
    l->p = t->p + at;
    l->n = nl ? (size_t)(nl - l->p) : t->len - at;
    l->n -= l->n > 0 && l->p[l->n - 1] == '\r';
    l->no++;
    return true;
}

static bool blank(const line *l) {
    return strspn(l->p, " \t\r") >= l->n;
}

/* ---- CSV ---------------------------------------------------------------------------------------------------------- */

/* Quotes are doubled within quotes. Answers whether quotes close. */
static bool split_csv(cells *c, const line *l) {
    tl_buf b;
    tl_buf_init(&b, 0);
    size_t i = 0;
    bool open = false, quoted = false;
    for (; i <= l->n; i++) {
        char ch = i < l->n ? l->p[i] : ',';
        if (open && i < l->n) {
            if (ch != '"') tl_buf_char(&b, ch);
            else if (i + 1 < l->n && l->p[i + 1] == '"') tl_buf_char(&b, l->p[i++]);
            else open = false;
        } else if (ch == '"' && b.len == 0 && !quoted) open = quoted = true;
        else if (ch == ',') {
            push(c, b.p, b.len);
            c->sure = quoted && !open;
            tl_buf_clear(&b);
            quoted = false;
        } else tl_buf_char(&b, ch);
    }
    tl_buf_free(&b);
    return !open;
}

bool imp_cut_csv(imp_text *t) {
    cells header = {0}, row = {0};
    t->form = "CSV";
    for (line l = {0}; next_line(t, &l); cells_clear(&row)) {
        if (blank(&l)) continue;
        bool closed = split_csv(&row, &l);
        if (closed && is_header(&row)) {
            cells_clear(&header);
            header = row;
            row = (cells){0};
        } else if (header.n == 0 || (row.n == 1 && header.n > 1 && !l.last)) imp_other(t, l.no, l.p, l.n);
        else if (!closed && !l.last) imp_add(t, l.no, NULL, "a quote does not close");
        else add_row(t, l.no, &header, &row, l.last);
    }
    cells_clear(&row);
    bool found = header.n > 0;
    cells_clear(&header);
    return found;
}

/* ---- Markdown ------------------------------------------------------------------------------------------------------ */

static void split_pipes(cells *c, const line *l) {
    size_t i = 1;
    while (i < l->n) {
        const char *bar = memchr(l->p + i, '|', l->n - i);
        size_t end = bar ? (size_t)(bar - l->p) : l->n, from = i, to = end;
        while (from < to && l->p[from] == ' ') from++;
        while (to > from && (l->p[to - 1] == ' ' || l->p[to - 1] == '\r')) to--;
        if (bar || to > from) push(c, l->p + from, to - from);
        c->sure = bar != NULL;
        i = end + 1;
    }
}

static bool is_rule(const line *l) {
    return l->n > 1 && strspn(l->p, "|-: \r") >= l->n;
}

bool imp_cut_markdown(imp_text *t) {
    cells header = {0}, row = {0};
    t->form = "Markdown";
    for (line l = {0}; next_line(t, &l); cells_clear(&row)) {
        if (blank(&l)) continue;
        if (l.p[0] != '|') {
            imp_other(t, l.no, l.p, l.n);
            continue;
        }
        if (is_rule(&l)) continue;
        split_pipes(&row, &l);
        if (is_header(&row)) {
            cells_clear(&header);
            header = row;
            row = (cells){0};
        } else if (header.n == 0) imp_other(t, l.no, l.p, l.n);
        else add_row(t, l.no, &header, &row, l.last);
    }
    cells_clear(&row);
    bool found = header.n > 0;
    cells_clear(&header);
    return found;
}

/* ---- SQL ------------------------------------------------------------------------------------------------------------ */

/* The text behind the quote at `i`; gives the place behind its end, or the line's end. It ends where a comma or bracket
 * follows: llama-bench does not double the quotes of a model's name. */
static size_t quoted(tl_buf *b, const line *l, size_t i) {
    for (i++; i < l->n; i++) {
        char after = i + 1 < l->n ? l->p[i + 1] : 0;
        if (l->p[i] == '\'' && (after == ',' || after == ')')) return i + 1;
        tl_buf_char(b, l->p[i]);
        i += l->p[i] == '\'' && after == '\'';
    }
    return l->n;
}

/* The list in brackets at *at, which moves behind it. False: the line ends first. */
static bool split_list(cells *c, const line *l, size_t *at) {
    tl_buf b;
    tl_buf_init(&b, 0);
    bool done = false;
    for (size_t i = *at + 1; i < l->n && !done;) {
        char ch = l->p[i];
        done = ch == ')';
        if (done || ch == ',') {
            push(c, b.p, b.len);
            tl_buf_clear(&b);
        } else if (ch == '\'') {
            i = quoted(&b, l, i);
            continue;
        } else if (strchr(" \"`", ch) == NULL) tl_buf_char(&b, ch);
        *at = ++i;
    }
    tl_buf_free(&b);
    return done;
}

static const char *find_in(const line *l, size_t from, const char *word) {
    size_t n = strlen(word);
    for (size_t i = from; i + n <= l->n; i++)
        if (memcmp(l->p + i, word, n) == 0) return l->p + i;
    return NULL;
}

/* One INSERT with its list of columns and one row. False: no such statement in this line. */
static bool insert(imp_text *t, const line *l) {
    cells names = {0}, values = {0};
    const char *word = find_in(l, 0, "INSERT INTO ");
    if (word == NULL) return false;
    size_t from = (size_t)(word - l->p), at = from;
    imp_other(t, l->no, l->p, from); /* a warning that ran into it */
    while (at < l->n && l->p[at] != '(') at++;
    bool whole = at < l->n && split_list(&names, l, &at);
    const char *given = whole ? find_in(l, at, "VALUES (") : NULL;
    if (given) at = (size_t)(given - l->p) + strlen("VALUES ");
    whole = given && split_list(&values, l, &at) && at < l->n && l->p[at] == ';';
    values.sure = whole;
    if (whole) add_row(t, l->no, &names, &values, false);
    else if (l->last) t->lost = tl_xprintf("the statement in line %" PRId64, l->no);
    else imp_add(t, l->no, NULL, "not an INSERT with a list of columns, one row and a semicolon");
    cells_clear(&names);
    cells_clear(&values);
    return true;
}

/* "  build_number INTEGER,": two words. */
static bool is_column(const line *l) {
    size_t words = 0;
    for (size_t i = 0; i < l->n; i++) words += l->p[i] > ' ' && (i == 0 || l->p[i - 1] <= ' ');
    return words == 2;
}

bool imp_cut_sql(imp_text *t) {
    bool found = false, table = false;
    t->form = "SQL";
    for (line l = {0}; next_line(t, &l);) {
        if (blank(&l)) continue;
        if (insert(t, &l)) found = true;
        else if (find_in(&l, 0, "CREATE TABLE ")) table = true;
        else if (table && find_in(&l, 0, ");")) table = false;
        else if (l.last) t->lost = tl_xprintf("line %" PRId64, l.no);
        else if (!table || !is_column(&l)) imp_other(t, l.no, l.p, l.n);
    }
    return found;
}
