/* A build from start to end: read, check everything, and only when nothing is wrong draw and write. */
#include "report/report_impl.h"

void rep_position(const rep *r, size_t from, int *line, int *column) {
    size_t lo = 0, hi = r->n_lines; /* the last line that starts at or before `from` */
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->lines[mid] <= from)
            lo = mid;
        else
            hi = mid;
    }
    *line = (int)lo + 1;
    *column = (int)(from - r->lines[lo]) + 1;
}

int rep_line_of(const rep *r, size_t from) {
    int line, column;
    rep_position(r, from, &line, &column);
    return line;
}

size_t rep_line_start(const rep *r, int line) {
    size_t i = line > 0 ? (size_t)line - 1 : 0;
    return i < r->n_lines ? r->lines[i] : r->text.len;
}

void rep_problem_add(rep *r, size_t from, const char *remedy, const char *fmt, ...) {
    tl_buf b;
    va_list ap;
    if (r->n_problems >= 1000) return; /* nobody reads more; the build fails all the same */
    tl_buf_init(&b, 0);
    va_start(ap, fmt);
    tl_buf_vfmt(&b, fmt, ap);
    va_end(ap);
    /* The masks of the lint are one byte each: written as what they stand for. */
    for (char *p = b.p; *p; p++) {
        if (*p == 1 || *p == '\n') *p = ' ';
    }
    rep_problem p = {.from = from, .text = tl_buf_take(&b), .remedy = tl_xstrdup(remedy ? remedy : "")};
    TL_PUSH(r->problems, r->n_problems, r->cap_problems, p);
}

static int by_place(const void *a, const void *b) {
    const rep_problem *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : strcmp(x->text, y->text);
}

static int span_by_place(const void *a, const void *b) {
    const rep_span *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static tl_status load(rep *r, const tl_report_spec *spec, tl_err *e) {
    tl_status st = TL_OK;
    tl_buf raw;
    tl_buf_init(&raw, 0);
    if (spec->text == NULL) {
        TRY(tl_file_read(&raw, spec->path, TL_REPORT_MAX_BYTES, e));
    } else if (spec->text_len > TL_REPORT_MAX_BYTES) {
        st = tl_fail(e, TL_LIMIT, "%s: more than %zu bytes", spec->path, TL_REPORT_MAX_BYTES);
        goto out;
    } else {
        tl_buf_add(&raw, spec->text, spec->text_len);
    }
    if (!tl_utf8_valid(raw.p, raw.len)) {
        size_t good = 0; /* the longest valid start: by lines, then it is near enough to find */
        for (size_t i = 0; i < raw.len; i++) {
            if (raw.p[i] == '\n' && tl_utf8_valid(raw.p + good, i - good))
                good = i + 1;
            else if (raw.p[i] == '\n')
                break;
        }
        int line = 1;
        for (size_t i = 0; i < good; i++) line += raw.p[i] == '\n';
        tl_fail(e, TL_INVALID, "%s:%d: a zero byte or a byte that is not UTF-8", spec->path, line);
        st = tl_remedy(e, "save the file as UTF-8");
        goto out;
    }
    const char *p = raw.p;
    if (strncmp(p, "\xef\xbb\xbf", 3) == 0) p += 3;
    for (; *p; p++) {
        if (!(*p == '\r' && p[1] == '\n')) tl_buf_char(&r->text, *p);
    }
    r->mask = tl_xalloc(r->text.len + 1);
    TL_PUSH(r->lines, r->n_lines, r->cap_lines, 0);
    for (size_t i = 0; i < r->text.len; i++) {
        if (r->text.p[i] == '\n') TL_PUSH(r->lines, r->n_lines, r->cap_lines, i + 1);
    }
out:
    tl_buf_free(&raw);
    return st;
}

static void check(rep *r) {
    rep_front(r);
    rep_scan(r);
    if (r->n_spans > 1) qsort(r->spans, r->n_spans, sizeof *r->spans, span_by_place);
    rep_tables(r);
    rep_lint(r);
    rep_ask_values(r);
    rep_ask_blocks(r);
    if (!r->too_big) rep_html(r);
    if (r->n_problems > 1) qsort(r->problems, r->n_problems, sizeof *r->problems, by_place);
}

static tl_status verdict(json_t *facts, const rep *r, tl_err *e) {
    json_t *list = json_array(), *stale = json_array();
    for (size_t i = 0; i < r->n_problems; i++) {
        int line, column;
        rep_position(r, r->problems[i].from, &line, &column);
        json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:s, s:s}", "file", r->spec->path, "line",
                                              line, "column", column, "text", r->problems[i].text, "remedy",
                                              r->problems[i].remedy));
    }
    for (size_t i = 0; i < r->n_blocks; i++) {
        const char *why = tl_json_str(r->blocks[i].json, "stale", "");
        char *s = *why ? tl_xprintf("%s: %s", r->blocks[i].id, why) : NULL;
        if (s) json_array_append_new(stale, json_string(s));
        free(s);
    }
    for (size_t i = 0; i < r->n_values; i++) {
        const char *why = tl_json_str(r->values[i].json, "stale", "");
        char *s = *why ? tl_xprintf("%s: %s", r->values[i].expr, why) : NULL;
        if (s) json_array_append_new(stale, json_string(s));
        free(s);
    }
    json_object_set_new(facts, "problems", list);
    json_object_set_new(facts, "stale", stale);
    json_object_set_new(facts, "values", json_integer((json_int_t)r->n_values));
    json_object_set_new(facts, "figures", json_integer((json_int_t)r->n_blocks));
    if (r->n_problems == 0) return TL_OK;
    const json_t *first = json_array_get(list, 0);
    char more[64] = "";
    if (r->n_problems > 1) snprintf(more, sizeof more, " (and %zu more)", r->n_problems - 1);
    tl_fail(e, TL_REFUSED, "%s:%d:%d: %s%s", r->spec->path, (int)tl_json_int(first, "line", 0),
            (int)tl_json_int(first, "column", 0), r->problems[0].text, more);
    return r->problems[0].remedy[0] ? tl_remedy(e, "%s", r->problems[0].remedy) : TL_REFUSED;
}

static tl_status put(json_t *files, const rep *r, const char *name, const char *p, size_t n, tl_err *e) {
    char *path = tl_path_join(r->spec->out_dir, name);
    tl_status st = tl_file_write(path, p, n, e);
    free(path);
    json_array_append_new(files, json_string(name));
    return st;
}

static tl_status write_all(json_t *facts, rep *r, tl_err *e) {
    tl_status st = TL_OK;
    json_t *files = json_array(), *manifest = NULL;
    char *text = NULL;
    tl_buf md, page;
    tl_buf_init(&md, 0);
    tl_buf_init(&page, 0);
    json_object_set_new(facts, "files", files);
    TRY(tl_dir_make(r->spec->out_dir, e));
    TRY(rep_draw(r, e));
    rep_block_html(r);
    tl_buf_clear(&r->html);
    rep_html(r);
    rep_markdown(&md, r);
    manifest = rep_manifest(r);
    text = tl_json_canonical(manifest);
    rep_page(&page, r, text);
    for (size_t i = 0; i < r->n_blocks; i++) {
        const char *key;
        json_t *f;
        json_object_foreach(json_object_get(r->blocks[i].facts, "files"), key, f) {
            char *name = tl_xprintf("figures/%s", tl_json_str(f, "name", ""));
            json_array_append_new(files, json_string(name));
            free(name);
        }
    }
    TRY(put(files, r, "report.md", md.p, md.len, e));
    TRY(put(files, r, "report.html", page.p, page.len, e));
    TRY(put(files, r, "manifest.json", text, strlen(text), e));
    const char *const keys[][2] = {
        {"markdown", "report.md"}, {"html", "report.html"}, {"manifest", "manifest.json"}};
    for (size_t i = 0; i < TL_COUNT(keys); i++) {
        char *path = tl_path_join(r->spec->out_dir, keys[i][1]);
        json_object_set_new(facts, keys[i][0], json_string(path));
        free(path);
    }
out:
    free(text);
    json_decref(manifest);
    tl_buf_free(&md);
    tl_buf_free(&page);
    return st;
}

static void names(rep *r) {
    char *dir = tl_path_dir(r->spec->path), *abs = tl_path_abs(dir);
    r->name = tl_xstrdup(r->spec->name ? r->spec->name : tl_path_base(abs));
    r->command_base = r->spec->command_base ? tl_xstrdup(r->spec->command_base)
                      : r->spec->out_dir    ? tl_path_join(r->spec->out_dir, "report.html")
                                            : tl_xstrdup("report.html");
    free(dir);
    free(abs);
}

static void drop(rep *r) {
    for (size_t i = 0; i < r->n_spans; i++) {
        free(r->spans[i].expr), free(r->spans[i].text), free(r->spans[i].header);
        json_decref(r->spans[i].attrs);
    }
    for (size_t i = 0; i < r->n_values; i++) free(r->values[i].expr), json_decref(r->values[i].json);
    for (size_t i = 0; i < r->n_blocks; i++) {
        rep_block *k = &r->blocks[i];
        json_decref(k->json), json_decref(k->spec), json_decref(k->facts);
        free(k->own_id), free(k->caption), free(k->command), free(k->svg), free(k->svg_narrow), free(k->html);
    }
    for (size_t i = 0; i < r->n_problems; i++) free(r->problems[i].text), free(r->problems[i].remedy);
    free(r->spans), free(r->values), free(r->blocks), free(r->problems), free(r->mask), free(r->lines),
        free(r->name), free(r->command_base);
    json_decref(r->front);
    tl_buf_free(&r->text);
    tl_buf_free(&r->html);
}

tl_status tl_report_build(json_t **out, const tl_report_spec *spec, const tl_report_source *source,
                          tl_err *e) {
    rep r = {.spec = spec, .source = source};
    json_t *facts = json_object();
    tl_status st = TL_OK;
    tl_buf_init(&r.text, 0);
    tl_buf_init(&r.html, 0);
    TRY(load(&r, spec, e));
    names(&r);
    check(&r);
    TRY(verdict(facts, &r, e));
    if (!spec->check_only) TRY(write_all(facts, &r, e));
out:
    drop(&r);
    if (out)
        *out = facts;
    else
        json_decref(facts);
    return st;
}
