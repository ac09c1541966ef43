/* The way of a file: checked as text, recognised, cut into records, made into rows. */
#include "import/import_impl.h"

void imp_text_clear(imp_text *t) {
    for (size_t i = 0; i < t->n; i++) {
        json_decref(t->v[i].fields);
        free(t->v[i].why);
    }
    free(t->v);
    free(t->lost);
    json_decref(t->other);
    *t = (imp_text){.p = t->p, .len = t->len, .other = json_array(), .seen_line = 1};
}

void imp_add(imp_text *t, int64_t line, json_t *fields, const char *why) {
    imp_record r = {.line = line, .fields = fields, .why = tl_xstrdup(why)};
    TL_PUSH(t->v, t->n, t->cap, r);
}

size_t imp_fit(const char *s, size_t n, size_t most) {
    if (n <= most) return n;
    while (most > 0 && ((unsigned char)s[most] & 0xc0) == 0x80) most--;
    return most;
}

void imp_other(imp_text *t, int64_t line, const char *p, size_t n) {
    while (n > 0 && (p[n - 1] == '\r' || p[n - 1] == ' ')) n--;
    if (n > 0) json_array_append_new(t->other, json_pack("{s:I, s:s%}", "line", (json_int_t)line, "text", p, imp_fit(p, n, 400)));
}

int64_t imp_line_of(imp_text *t, size_t at) {
    for (; t->seen < at; t->seen++) t->seen_line += t->p[t->seen] == '\n';
    return t->seen_line;
}

/* Text at all? What else people have is named. */
static tl_status check_text(imp_text *t, const char *name, tl_err *e) {
    const unsigned char *u = (const unsigned char *)t->p;
    if (t->len > TL_IMPORT_MAX) return tl_fail(e, TL_LIMIT, "%s: %zu bytes; an import reads at most %zu (64 MiB)", name, t->len, TL_IMPORT_MAX);
    if (t->len >= 2 && ((u[0] == 0xff && u[1] == 0xfe) || (u[0] == 0xfe && u[1] == 0xff))) {
        tl_fail(e, TL_INVALID, "%s: UTF-16 text", name);
        return tl_remedy(e, "save it as UTF-8: iconv -f UTF-16 -t UTF-8");
    }
    if (t->len >= 3 && memcmp(u, "\xef\xbb\xbf", 3) == 0) {
        t->p += 3;
        t->len -= 3;
    }
    if (strspn(t->p, " \t\r\n") == t->len) return tl_fail(e, TL_INVALID, "%s: an empty file", name);
    if (tl_utf8_valid(t->p, t->len)) return TL_OK;
    const char *nul = memchr(t->p, 0, t->len);
    if (nul) return tl_fail(e, TL_INVALID, "%s: not a text: line %" PRId64 " holds a NUL", name, imp_line_of(t, (size_t)(nul - t->p)));
    int64_t line = 1;
    for (const char *at = t->p, *nl; (nl = strchr(at, '\n')) != NULL && tl_utf8_valid(at, (size_t)(nl - at)); at = nl + 1) line++;
    return tl_fail(e, TL_INVALID, "%s: not UTF-8 in line %" PRId64, name, line);
}

/* Names of the first readable record's fields, else why it is not, else the first line. */
static void seen(tl_buf *b, const imp_text *t) {
    for (size_t i = 0; i < t->n; i++) {
        const char *name;
        json_t *v;
        int k = 0;
        if (t->v[i].fields == NULL) continue;
        tl_buf_str(b, "an object with ");
        json_object_foreach(t->v[i].fields, name, v) if (k++ < 6) tl_buf_fmt(b, "%s'%.*s'", k > 1 ? ", " : "", (int)imp_fit(name, strlen(name), 30), name);
        if (k == 0) tl_buf_str(b, "no fields");
        return;
    }
    if (t->n > 0) {
        tl_buf_fmt(b, "line %" PRId64 ", %.*s", t->v[0].line, (int)imp_fit(t->v[0].why, strlen(t->v[0].why), 200), t->v[0].why);
        return;
    }
    tl_buf_fmt(b, "'%.*s'", (int)imp_fit(t->p, strcspn(t->p, "\r\n"), 60), t->p);
}

static tl_status unknown(const imp_text *t, const char *name, const char *tool, tl_err *e) {
    tl_buf b, known;
    tl_buf_init(&b, 300);
    tl_buf_init(&known, 300);
    seen(&b, t);
    for (size_t i = 0; imp_tool_at(i) != NULL; i++)
        if (i == 0 || !tl_str_eq(imp_tool_at(i)->name, imp_tool_at(i - 1)->name)) tl_buf_fmt(&known, "%s%s", i ? ", " : "", imp_tool_at(i)->name);
    if (t->lost && t->n == 0) tl_fail(e, TL_INVALID, "%s: cut off within %s; nothing in it is complete", name, t->lost);
    else if (tool) tl_fail(e, TL_INVALID, "%s: not a result of %s; seen: %s", name, tool, b.p);
    else tl_fail(e, TL_INVALID, "%s: of no tool that is known here; seen: %s", name, b.p);
    tl_remedy(e, "recognised by content are %s", known.p);
    tl_buf_free(&b);
    tl_buf_free(&known);
    return TL_INVALID;
}

/* Rows from `before` on that carry no figure become refusals. */
static void refuse_empty(imp_rows *out, size_t before, int64_t line) {
    for (size_t k = json_array_size(out->rows); k > before; k--) {
        const json_t *row = json_array_get(out->rows, k - 1);
        if (json_array_size(json_object_get(row, "figures")) > 0) continue;
        imp_refuse(out, tl_json_int(row, "line", line), "no figure in it");
        json_array_remove(out->rows, k - 1);
    }
}

/* Each record is let go when its rows are made: a file's records weigh many times the file. */
static void read_all(imp_rows *out, imp_text *t, const imp_tool *tool) {
    char why[128];
    const char *lacks;
    for (size_t i = 0; i < t->n; i++) {
        imp_record *r = &t->v[i];
        size_t before = json_array_size(out->rows);
        if (r->fields == NULL) imp_refuse(out, r->line, r->why);
        else if (!imp_has_all(r->fields, tool, &lacks)) {
            snprintf(why, sizeof why, "not a row of %s: it has no field '%s'", tool->name, lacks);
            imp_refuse(out, r->line, why);
        } else {
            (tool->read ? tool->read : imp_row)(out, r, tool);
            refuse_empty(out, before, r->line);
        }
        json_decref(r->fields);
        r->fields = NULL;
    }
}

/* Lines that the tool understands leave the list of others. */
static void read_lines(imp_rows *out, imp_text *t, const imp_tool *tool) {
    for (size_t i = json_array_size(t->other); tool->line && i-- > 0;) {
        const json_t *l = json_array_get(t->other, i);
        if (tool->line(out, tl_json_int(l, "line", 0), tl_json_str(l, "text", ""))) json_array_remove(t->other, i);
    }
}

/* "b1234 5678": the fields of the version, in the file's order. */
static json_t *version_text(const json_t *version) {
    tl_buf b;
    tl_buf_init(&b, 0);
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)version, name, v) {
        if (json_is_null(v) || tl_str_eq(json_string_value(v), "")) continue;
        if (b.len) tl_buf_char(&b, ' ');
        if (json_is_string(v)) tl_buf_str(&b, json_string_value(v));
        else if (json_is_integer(v)) tl_buf_fmt(&b, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    }
    json_t *out = b.len ? json_string(b.p) : json_null();
    tl_buf_free(&b);
    return out;
}

/* "how many samples stand behind 4 of 12 statistics", where some or all lack it. */
static void add_lack(json_t *out, size_t lack, size_t of, const char *what, const char *which) {
    if (lack == 0) return;
    char *text = lack == of ? tl_xprintf("%s", what) : tl_xprintf("%s, for %zu of %zu %s", what, lack, of, which);
    json_array_append_new(out, json_string(text));
    free(text);
}

static json_t *missing(const imp_rows *r, const imp_tool *tool) {
    json_t *out = json_array(), *row, *f;
    size_t i, k, n = 0, statistics = 0, spread = 0, means = 0;
    json_array_foreach(r->rows, i, row) json_array_foreach(json_object_get(row, "figures"), k, f) {
        const char *statistic = tl_json_str(f, "statistic", NULL); /* a total has neither samples nor spread */
        bool mean = tl_str_eq(statistic, "mean"), there = json_is_number(json_object_get(f, "number"));
        statistics += there && statistic;
        n += there && statistic && json_object_get(f, "n") == NULL;
        means += there && mean;
        spread += there && mean && json_object_get(f, "spread") == NULL;
    }
    add_lack(out, json_object_size(r->machine) == 0, 1, "the machine", "");
    add_lack(out, json_object_size(r->version) == 0, 1, "the tool's version", "");
    add_lack(out, r->when == NULL, 1, "when it ran", "");
    add_lack(out, n, statistics, "the number of samples", "statistics");
    add_lack(out, spread, means, "the spread", "means");
    for (i = 0; i < TL_COUNT(tool->missing) && tool->missing[i]; i++) json_array_append_new(out, json_string(tool->missing[i]));
    return out;
}

static json_t *result(imp_rows *r, imp_text *t, const imp_tool *tool) {
    imp_settle(r);
    json_t *lacks = missing(r, tool);
    const size_t found = json_array_size(r->rows) + json_array_size(r->refused);
    return json_pack("{s:s, s:s, s:o, s:O?, s:O, s:I, s:O, s:O, s:O, s:s?, s:o}", "tool", tool->name, "format", t->form, "version", version_text(r->version),
                     "when", r->when, "machine", r->machine, "found", (json_int_t)found, "rows", r->rows,
                     "refused", r->refused, "other", t->other, "lost", t->lost, "missing", lacks);
}

tl_status tl_import_read(json_t **out, const void *bytes, size_t len, const char *name, const tl_import_options *o, tl_err *e) {
    static const tl_import_options none = {0};
    char *copy = tl_xalloc(len + 1); /* the readers may look one byte past the end */
    memcpy(copy, len ? bytes : "", len);
    imp_text t = {.p = copy, .len = len, .seen_line = 1};
    imp_rows r = {.rows = json_array(), .refused = json_array(), .machine = json_object(), .version = json_object()};
    const imp_tool *tool;
    tl_status st = TL_OK;
    *out = NULL;
    if (o == NULL) o = &none;
    TRY(check_text(&t, name, e));
    tool = imp_recognise(&t, o->tool);
    if (tool == NULL) {
        st = unknown(&t, name, o->tool, e);
        goto out;
    }
    if (t.lost != NULL && !o->partial) {
        st = tl_fail(e, TL_INVALID, "%s: %s, cut off within %s", name, tool->name, t.lost);
        tl_remedy(e, "fetch the whole file, or import its complete rows with --partial");
        goto out;
    }
    read_all(&r, &t, tool);
    if (json_array_size(r.rows) == 0) {
        st = tl_fail(e, TL_INVALID, "%s: %s, but no row of it can be read; line %" PRId64 ": %s", name, tool->name,
                     tl_json_int(json_array_get(r.refused, 0), "line", 0), tl_json_str(json_array_get(r.refused, 0), "reason", "no rows"));
        goto out;
    }
    read_lines(&r, &t, tool);
    *out = result(&r, &t, tool);
out:
    imp_text_clear(&t);
    json_decref(t.other);
    json_decref(r.rows);
    json_decref(r.refused);
    json_decref(r.machine);
    json_decref(r.version);
    json_decref(r.when);
    free(copy);
    return st;
}
