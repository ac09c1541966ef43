/* Blocks: attributes, asking the source, drawing, and their Markdown and HTML. */
#include "report/report_impl.h"

#include "figure/figure.h"

static const struct {
    const char *kind;
    const char *attrs[6];
} KINDS[] = {
    {"figure", {"id", "caption", "alt", "run"}}, {"table", {"id", "caption", "run"}},
    {"formula", {"id", "run", "open"}},          {"rerun", {"id", "figure"}},
    {"ledger", {"id", "caption", "run"}},        {"menu", {"id", "caption", "run"}},
};

bool rep_block_known(const char *kind, const char **out) {
    for (size_t i = 0; i < TL_COUNT(KINDS); i++) {
        if (strcmp(kind, KINDS[i].kind) == 0) {
            *out = KINDS[i].kind;
            return true;
        }
    }
    return false;
}

static void attr_check(rep *r, const rep_span *s, const char *key, const char *value) {
    for (size_t i = 0; i < TL_COUNT(KINDS); i++) {
        if (strcmp(KINDS[i].kind, s->expr) != 0) continue;
        size_t n = 0;
        for (; n < 6 && KINDS[i].attrs[n]; n++) {
            if (strcmp(KINDS[i].attrs[n], key) == 0) goto known;
        }
        const char *near = tl_nearest(key, KINDS[i].attrs, n);
        char *hint = tl_xprintf("%s '%s'%s", near ? "did you mean" : "it knows",
                                near ? near : KINDS[i].attrs[0], near ? "?" : " and others");
        rep_problem_add(r, s->from, hint, "a %s block has no attribute '%.40s'", s->expr, key);
        free(hint);
        return;
    }
known:
    if (json_object_get(s->attrs, key) != NULL)
        rep_problem_add(r, s->from, "keep one of the two", "attribute '%.40s' is given twice", key);
    if (strcmp(key, "id") == 0 && (value[0] < 'a' || value[0] > 'z' || strlen(value) > 40 ||
                                   value[strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-")])) {
        rep_problem_add(r, s->from, "small letters, digits and '-', a letter first", "'%.60s' is not an id",
                        value);
    }
    json_object_set_new(s->attrs, key, json_string(value));
}

void rep_block_attrs(rep *r, rep_span *s, const char *p) {
    s->attrs = json_object();
    for (;;) {
        p += strspn(p, " \t");
        if (*p == 0) return;
        size_t k = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_-");
        if (k == 0 || p[k] != '=') {
            rep_problem_add(r, s->from, "write key=value or key=\"a longer value\"",
                            "'%.40s' is not an attribute", p);
            return;
        }
        char *key = tl_xstrndup(p, k);
        tl_buf v;
        tl_buf_init(&v, 0);
        p += k + 1;
        bool quoted = *p == '"', closed = !quoted;
        for (p += quoted; *p && (quoted ? *p != '"' : !strchr(" \t", *p)); p++) {
            if (quoted && *p == '\\' && p[1]) p++;
            tl_buf_char(&v, *p);
        }
        if (quoted && *p == '"') closed = true, p++;
        if (!closed)
            rep_problem_add(r, s->from, "end it with \"", "attribute '%s' has no closing quote", key);
        attr_check(r, s, key, v.p);
        free(key);
        tl_buf_free(&v);
    }
}

/* ---- asking
 * -------------------------------------------------------------------------------------------------- */

static bool table_like(const char *kind) {
    return strcmp(kind, "table") == 0 || strcmp(kind, "ledger") == 0 || strcmp(kind, "menu") == 0;
}

static void check_id(rep *r, rep_block *k, const rep_span *s) {
    const char *id = tl_json_str(s->attrs, "id", NULL);
    if (id == NULL && strcmp(k->kind, "figure") == 0)
        rep_problem_add(r, s->from, "write ```figure id=fig-1", "a figure block has no id");
    k->own_id = id ? tl_xstrdup(id) : tl_xprintf("%s-%zu", k->kind, k->number);
    k->id = k->own_id;
    for (size_t i = 0; i < r->n_blocks; i++) {
        if (strcmp(r->blocks[i].id, k->id) == 0)
            rep_problem_add(r, s->from, "give each its own", "the id '%s' is used twice", k->id);
    }
}

static void check_table(rep *r, const rep_block *k) {
    const json_t *columns = json_object_get(k->json, "columns"), *rows = json_object_get(k->json, "rows");
    size_t n = json_array_size(columns), i, j;
    json_t *c, *row, *cell;
    if (n == 0 || n > 64 || !json_is_array(rows) || json_array_size(rows) > 5000) {
        rep_problem_add(r, k->from, "1 to 64 columns, at most 5000 rows",
                        "%s '%s' has no usable columns and rows", k->kind, k->id);
        return;
    }
    json_array_foreach(columns, i, c) {
        if (tl_json_str(c, "title", NULL) == NULL)
            rep_problem_add(r, k->from, NULL, "column %zu of '%s' has no title", i + 1, k->id);
        bool plain = false;
        json_array_foreach(rows, j, row) plain |= json_is_number(json_array_get(row, i));
        if (plain && rep_unit_is_performance(tl_json_str(c, "unit", "")) &&
            rep_label_of(tl_json_str(c, "label", NULL)) == REP_NONE) {
            rep_problem_add(r, k->from, "give the column a label, or its cells as values",
                            "column '%.60s' of '%s' has a unit, but no label", tl_json_str(c, "title", "?"),
                            k->id);
        }
    }
    json_array_foreach(rows, j, row) {
        if (json_array_size(row) != n) {
            rep_problem_add(r, k->from, NULL, "row %zu of '%s' has %zu cells, %zu columns", j + 1, k->id,
                            json_array_size(row), n);
            return;
        }
        json_array_foreach(row, i, cell) {
            char what[96];
            snprintf(what, sizeof what, "row %zu, column %zu of '%s'", j + 1, i + 1, k->id);
            if (json_is_object(cell)) rep_value_check(r, cell, k->from, what);
            if (json_is_string(cell)) rep_lint_text(r, json_string_value(cell), k->from, what);
        }
    }
}

static void check_figure(rep *r, rep_block *k, const rep_span *s) {
    const json_t *spec = json_object_get(k->json, "figure");
    k->spec = spec ? json_deep_copy(spec) : json_object();
    json_object_set_new(k->spec, "id", json_string(k->id));
    if (!json_object_get(k->spec, "lang")) json_object_set_new(k->spec, "lang", json_string(r->w->lang));
    if (tl_json_str(s->attrs, "alt", NULL)) json_object_set(k->spec, "alt", json_object_get(s->attrs, "alt"));
    if (tl_json_str(k->spec, "alt", "")[0] == 0 && k->caption && !strstr(k->caption, "{= "))
        json_object_set_new(k->spec, "alt", json_string(k->caption));
    tl_err e = {0};
    if (tl_figure_check(k->spec, &e) != TL_OK) rep_problem_add(r, k->from, e.remedy, "%s", e.msg);
    rep_label l = rep_value_label(k->json);
    if (l == REP_NONE) rep_problem_add(r, k->from, NULL, "figure '%s' has no label", k->id);
    if (l == REP_MEASURED && tl_json_str(k->json, "run", "")[0] == 0)
        rep_problem_add(r, k->from, NULL, "figure '%s' is measured, but names no run", k->id);
}

/* A caption may name values: {= EXPR}. Goes over its parts: text (expr NULL) and expressions. */
static const char *caption_part(const char *p, char **text, char **expr) {
    const char *open = strstr(p, "{= "), *close = open ? strchr(open, '}') : NULL;
    *text = close ? tl_xstrndup(p, (size_t)(open - p)) : tl_xstrdup(p);
    *expr = close ? tl_xstrndup(open + 3, (size_t)(close - open - 3)) : NULL;
    return close ? close + 1 : p + strlen(p);
}

static void ask_caption(rep *r, const char *caption, size_t from) {
    for (const char *p = caption; p && *p;) {
        char *text, *expr;
        p = caption_part(p, &text, &expr);
        rep_lint_text(r, text, from, "caption");
        if (expr) rep_ask_value(r, expr, from, true);
        free(text), free(expr);
    }
}

static void caption_print(tl_buf *b, const rep *r, const char *caption, bool html) {
    for (const char *p = caption; p && *p;) {
        char *text, *expr;
        p = caption_part(p, &text, &expr);
        if (html)
            tl_buf_html(b, text);
        else
            rep_md(b, text);
        for (size_t i = 0; expr && i < r->n_values; i++) {
            const rep_value *v = &r->values[i];
            if (strcmp(v->expr, expr) != 0 || v->json == NULL) continue;
            if (html)
                rep_value_html(b, r, v->json, v->note);
            else
                rep_value_text(b, r, v);
        }
        free(text), free(expr);
    }
}

static void ask(rep *r, rep_span *s) {
    rep_block k = {.from = s->from};
    rep_block_known(s->expr, &k.kind);
    k.number = 1;
    for (size_t i = 0; i < r->n_blocks; i++)
        k.number +=
            strcmp(r->blocks[i].kind, k.kind) == 0 || (table_like(k.kind) && table_like(r->blocks[i].kind));
    check_id(r, &k, s);
    tl_err e = {0};
    tl_report_pos pos = {.file = r->spec->path};
    rep_position(r, s->from, &pos.line, &pos.column);
    tl_status st = r->source->block(&k.json, r->source->ctx, k.kind, s->attrs, s->text, &pos, &e);
    const char *own = tl_json_str(s->attrs, "caption", NULL);
    if (st != TL_OK || !json_is_object(k.json)) {
        rep_problem_add(r, s->from, e.remedy, "%s '%s': %s", k.kind, k.id,
                        e.msg[0] ? e.msg : "the source gave nothing");
        json_decref(k.json);
        k.json = json_object();
    } else {
        const char *caption = own ? own : tl_json_str(k.json, "caption", NULL);
        k.caption = tl_xstrdup(caption);
        ask_caption(r, caption, s->from);
        if (strcmp(k.kind, "figure") == 0) check_figure(r, &k, s);
        if (table_like(k.kind)) check_table(r, &k);
        if (strcmp(k.kind, "formula") == 0)
            rep_value_check(r, json_object_get(k.json, "value"), s->from, "the formula's value");
        if (strcmp(k.kind, "rerun") == 0 && tl_json_str(k.json, "command", "")[0] == 0)
            rep_problem_add(r, s->from, NULL, "the rerun block has no command");
    }
    const char *command = tl_json_str(k.json, "command", NULL);
    if (command)
        k.command = tl_xstrdup(command);
    else if (strcmp(k.kind, "figure") == 0)
        k.command = tl_xprintf("tally rerun %s#%s", r->command_base, k.id);
    s->item = r->n_blocks;
    TL_PUSH(r->blocks, r->n_blocks, r->cap_blocks, k);
}

void rep_ask_blocks(rep *r) {
    for (size_t i = 0; i < r->n_spans; i++) {
        if (r->spans[i].kind == SPAN_BLOCK) ask(r, &r->spans[i]);
    }
}

/* ---- drawing
 * ------------------------------------------------------------------------------------------------- */

/* Without the XML declaration, which may only stand at the start of a file. */
static tl_status inline_svg(char **out, const char *dir, const char *name, tl_err *e) {
    tl_status st = TL_OK;
    tl_buf b;
    tl_buf_init(&b, 0);
    char *path = tl_path_join(dir, name);
    TRY(tl_file_read(&b, path, (size_t)64 << 20, e));
    const char *p = strstr(b.p, "<svg");
    *out = tl_xstrdup(p ? p : b.p);
out:
    free(path);
    tl_buf_free(&b);
    return st;
}

tl_status rep_draw(rep *r, tl_err *e) {
    tl_status st = TL_OK;
    char *dir = tl_path_join(r->spec->out_dir, "figures");
    const tl_figure_options options = {.gnuplot = r->spec->gnuplot};
    for (size_t i = 0; i < r->n_blocks; i++) {
        rep_block *k = &r->blocks[i];
        if (k->spec == NULL) continue;
        TRY(tl_figure_render(&k->facts, k->spec, dir, &options, e));
        TRY(inline_svg(&k->svg, dir, tl_json_str(k->facts, "files.svg.name", ""), e));
        TRY(inline_svg(&k->svg_narrow, dir, tl_json_str(k->facts, "files.narrow.name", ""), e));
    }
out:
    free(dir);
    return st;
}

/* ---- HTML
 * ---------------------------------------------------------------------------------------------------- */

static void text_html(tl_buf *b, const char *s) {
    if (s && *s) tl_buf_html(b, s);
}

static void command_html(tl_buf *b, const rep *r, const char *command) {
    if (command == NULL) return;
    tl_buf_str(b, "<span class=\"cmd\"><code>");
    tl_buf_html(b, command);
    tl_buf_fmt(
        b,
        "</code><button type=\"button\" class=\"copy\" hidden=\"hidden\" data-done=\"%s\">%s</button></span>",
        r->w->copied, r->w->copy);
}

/* run 01J9... · ab12cd3 (clean) · machine · engine · label · command */
static void source_html(tl_buf *b, const rep *r, const rep_block *k) {
    const char *keys[] = {"run", "revision", "machine", "engine", "model"},
               *stale = tl_json_str(k->json, "stale", "");
    bool any = false;
    if (tl_json_str(k->json, "run", "")[0] == 0 && k->command == NULL) return;
    tl_buf_str(b, "<div class=\"src\"><span>");
    for (size_t i = 0; i < TL_COUNT(keys); i++) {
        const char *v = tl_json_str(k->json, keys[i], "");
        if (*v == 0) continue;
        tl_buf_str(b, any ? " · " : "");
        if (i == 0) tl_buf_str(b, "run ");
        tl_buf_html(b, v);
        any = true;
    }
    tl_buf_str(b, "</span>");
    rep_chip_html(b, r, rep_value_label(k->json), 0);
    if (*stale) {
        tl_buf_fmt(b, "<span class=\"stale\">● %s%s", r->w->stale, r->w->colon);
        tl_buf_html(b, stale);
        tl_buf_str(b, "</span>");
    } else {
        tl_buf_fmt(b, "<span class=\"ok\">● %s</span>", r->w->current);
    }
    command_html(b, r, k->command);
    tl_buf_str(b, "</div>");
}

static void caption_html(tl_buf *b, const rep *r, const rep_block *k, const char *word) {
    tl_buf_fmt(b, "<figcaption><b>%s %zu</b>", word, k->number);
    if (k->caption) tl_buf_str(b, "　"), caption_print(b, r, k->caption, true);
    tl_buf_str(b, "</figcaption>");
}

static void number_cell(tl_buf *b, const json_t *p, const char *key) {
    const json_t *v = json_object_get(p, key);
    if (!json_is_number(v)) return; /* four digits to read; the manifest has them all */
    json_t *shown = json_pack("{s:O}", "value", v);
    rep_number(b, shown);
    json_decref(shown);
}

static void axis_title(tl_buf *b, const json_t *axis) {
    tl_buf_html(b, tl_json_str(axis, "label", ""));
    if (tl_json_str(axis, "unit", "")[0])
        tl_buf_str(b, " ("), tl_buf_html(b, tl_json_str(axis, "unit", "")), tl_buf_str(b, ")");
}

/* Every point that was drawn, for those who cannot see the drawing. */
static void data_html(tl_buf *b, const rep *r, const rep_block *k) {
    const json_t *x = json_object_get(k->spec, "x"), *y = json_object_get(k->spec, "y"), *s, *p;
    const json_t *categories = json_object_get(x, "categories");
    size_t i, j;
    tl_buf_fmt(
        b,
        "<details class=\"data\"><summary>%s</summary><div class=\"tbl\"><table><thead><tr><th>%s</th><th>",
        r->w->data, r->w->series);
    axis_title(b, x);
    tl_buf_str(b, "</th><th>");
    axis_title(b, y);
    tl_buf_fmt(b, "</th><th>%s</th></tr></thead>", r->w->interval);
    json_array_foreach(json_object_get(k->spec, "series"), i, s) {
        tl_buf_str(b, "<tbody><tr><th colspan=\"4\" scope=\"rowgroup\">");
        tl_buf_html(b, tl_json_str(s, "name", ""));
        rep_chip_html(b, r, rep_value_label(s), 0);
        tl_buf_str(b, "</th></tr>");
        json_array_foreach(json_object_get(s, "points"), j, p) {
            tl_buf_str(b, "<tr><td>");
            tl_buf_html(b, tl_json_str(p, "text", ""));
            tl_buf_str(b, "</td><td>");
            if (categories)
                text_html(b, json_string_value(json_array_get(categories, (size_t)tl_json_num(p, "x", 0))));
            else
                number_cell(b, p, "x");
            tl_buf_str(b, "</td><td>");
            if (json_is_number(json_object_get(p, "y")))
                number_cell(b, p, "y");
            else if (!json_is_number(json_object_get(p, "ylo")))
                tl_buf_str(b, r->w->missing);
            tl_buf_str(b, "</td><td>");
            number_cell(b, p, "ylo");
            if (json_is_number(json_object_get(p, "yhi"))) tl_buf_str(b, " – ");
            number_cell(b, p, "yhi");
            tl_buf_str(b, "</td></tr>");
        }
        tl_buf_str(b, "</tbody>");
    }
    tl_buf_str(b, "</table></div></details>");
}

static void figure_html(tl_buf *b, const rep *r, const rep_block *k) {
    tl_buf_fmt(b, "<figure id=\"%s\"><div class=\"plot wide\">", k->id);
    tl_buf_str(b, k->svg ? k->svg : "");
    tl_buf_str(b, "</div><div class=\"plot narrow\">");
    tl_buf_str(b, k->svg_narrow ? k->svg_narrow : "");
    tl_buf_str(b, "</div>");
    caption_html(b, r, k, r->w->figure);
    source_html(b, r, k);
    data_html(b, r, k);
    tl_buf_str(b, "</figure>\n");
}

static void cell_text(tl_buf *b, const json_t *cell) {
    if (json_is_object(cell)) {
        rep_number(b, cell);
    } else if (json_is_string(cell)) {
        tl_buf_str(b, json_string_value(cell));
    } else if (json_is_number(cell)) {
        json_t *v = json_pack("{s:O}", "value", cell);
        rep_number(b, v);
        json_decref(v);
    }
}

/* What a cell says that its column's header does not: its own unit, its own label. */
static void cell_extra(const json_t *cell, const json_t *column, const char **unit, rep_label *label) {
    const char *u = tl_json_str(cell, "unit", "");
    *unit =
        json_is_object(cell) && *u && strcmp(u, "1") != 0 && !tl_str_eq(u, tl_json_str(column, "unit", NULL))
            ? u
            : NULL;
    rep_label l = json_is_object(cell) ? rep_value_label(cell) : REP_NONE;
    *label = l != rep_value_label(column) ? l : REP_NONE;
}

/* A ratio's unit is "1", which nobody writes. */
static const char *header_unit(const json_t *column) {
    const char *u = tl_json_str(column, "unit", "");
    return strcmp(u, "1") == 0 ? "" : u;
}

static void table_html(tl_buf *b, const rep *r, const rep_block *k) {
    const json_t *columns = json_object_get(k->json, "columns"), *c, *row, *cell;
    size_t i, j;
    tl_buf_fmt(b, "<figure id=\"%s\" class=\"t\"><div class=\"tbl%s\"><table><thead><tr>", k->id,
               json_array_size(columns) > 3 ? " cards" : "");
    json_array_foreach(columns, i, c) {
        tl_buf_str(b, "<th scope=\"col\">");
        tl_buf_html(b, tl_json_str(c, "title", ""));
        if (header_unit(c)[0]) tl_buf_str(b, " "), tl_buf_html(b, header_unit(c));
        if (rep_value_label(c) != REP_NONE) tl_buf_str(b, "<br/>");
        rep_chip_html(b, r, rep_value_label(c), 0);
        tl_buf_str(b, "</th>");
    }
    tl_buf_str(b, "</tr></thead><tbody>\n");
    json_array_foreach(json_object_get(k->json, "rows"), j, row) {
        tl_buf_str(b, "<tr>");
        json_array_foreach(row, i, cell) {
            const char *unit;
            rep_label l;
            tl_buf t;
            c = json_array_get(columns, i);
            tl_buf_init(&t, 0);
            cell_text(&t, cell);
            cell_extra(cell, c, &unit, &l);
            if (unit) tl_buf_fmt(&t, " %s", unit);
            tl_buf_fmt(b, "<td%s><span class=\"th\">",
                       json_is_string(cell) && !tl_str_eq(tl_json_str(c, "align", ""), "right")
                           ? ""
                           : " class=\"n\"");
            tl_buf_html(b, tl_json_str(c, "title", ""));
            if (header_unit(c)[0]) tl_buf_str(b, " "), tl_buf_html(b, header_unit(c));
            rep_chip_html(b, r, rep_value_label(c), 0);
            tl_buf_str(b, "</span><span>");
            tl_buf_html(b, json_is_null(cell) ? r->w->missing : t.p);
            rep_chip_html(b, r, l, 0);
            tl_buf_str(b, "</span></td>");
            tl_buf_free(&t);
        }
        tl_buf_str(b, "</tr>\n");
    }
    tl_buf_str(b, "</tbody></table></div>");
    if (k->caption) caption_html(b, r, k, r->w->table);
    source_html(b, r, k);
    tl_buf_str(b, "</figure>\n");
}

static void formula_html(tl_buf *b, const rep *r, const rep_block *k, bool open) {
    const json_t *v = json_object_get(k->json, "value");
    tl_buf_fmt(b, "<details id=\"%s\"%s><summary>", k->id, open ? " open=\"open\"" : "");
    tl_buf_html(b, tl_json_str(k->json, "title", r->w->formula));
    tl_buf_str(b, r->w->colon);
    rep_value_html(b, r, v, 0);
    tl_buf_str(b, "</summary>\n<ul class=\"tree\">");
    rep_tree_html(b, r, v, 0);
    tl_buf_str(b, "</ul></details>\n");
}

void rep_block_html(rep *r) {
    for (size_t i = 0; i < r->n_blocks; i++) {
        rep_block *k = &r->blocks[i];
        tl_buf b;
        tl_buf_init(&b, 0);
        if (strcmp(k->kind, "figure") == 0)
            figure_html(&b, r, k);
        else if (table_like(k->kind))
            table_html(&b, r, k);
        else if (strcmp(k->kind, "formula") == 0)
            formula_html(&b, r, k, true);
        else {
            tl_buf_str(&b, "<div class=\"rerun\">");
            if (tl_json_str(k->json, "text", "")[0])
                tl_buf_str(&b, "<p>"), text_html(&b, tl_json_str(k->json, "text", "")),
                    tl_buf_str(&b, "</p>");
            command_html(&b, r, k->command);
            tl_buf_str(&b, "</div>\n");
        }
        free(k->html);
        k->html = tl_buf_take(&b);
    }
}

/* ---- Markdown
 * ------------------------------------------------------------------------------------------------ */

/* A code span around any text without line ends: one more backtick than the longest run inside. */
void rep_md_code(tl_buf *b, const char *s) {
    size_t most = 0, n = 0;
    for (const char *p = s; *p; p++) {
        n = *p == '`' ? n + 1 : 0;
        if (n > most) most = n;
    }
    for (size_t i = 0; i <= most; i++) tl_buf_char(b, '`');
    if (most) tl_buf_char(b, ' ');
    for (const char *p = s; *p; p++) tl_buf_char(b, (unsigned char)*p < 0x20 ? ' ' : *p);
    if (most) tl_buf_char(b, ' ');
    for (size_t i = 0; i <= most; i++) tl_buf_char(b, '`');
}

static void source_text(tl_buf *b, const rep *r, const rep_block *k) {
    const char *keys[] = {"run", "revision", "machine", "engine", "model"},
               *stale = tl_json_str(k->json, "stale", "");
    bool any = false;
    if (tl_json_str(k->json, "run", "")[0] == 0 && k->command == NULL) return;
    tl_buf_str(b, "\n");
    for (size_t i = 0; i < TL_COUNT(keys); i++) {
        const char *v = tl_json_str(k->json, keys[i], "");
        if (*v == 0) continue;
        tl_buf_str(b, any ? " · " : "");
        if (i == 0) tl_buf_str(b, "run ");
        rep_md(b, v);
        any = true;
    }
    rep_label l = rep_value_label(k->json);
    if (l != REP_NONE)
        tl_buf_fmt(b, "%s%s%s%s", any ? " · " : "", r->w->open + (r->w->open[0] == ' '), r->w->label[l],
                   r->w->close);
    if (*stale) tl_buf_fmt(b, " · %s%s", r->w->stale, r->w->colon), rep_md(b, stale);
    if (k->command) tl_buf_str(b, " · "), rep_md_code(b, k->command);
    tl_buf_str(b, "\n");
}

static void caption_text(tl_buf *b, const rep *r, const rep_block *k, const char *word) {
    tl_buf_fmt(b, "\n**%s %zu**", word, k->number);
    if (k->caption) tl_buf_str(b, " "), caption_print(b, r, k->caption, false);
    tl_buf_str(b, "\n");
}

static void table_text(tl_buf *b, const rep *r, const rep_block *k) {
    const json_t *columns = json_object_get(k->json, "columns"), *c, *row, *cell;
    size_t i, j;
    tl_buf_str(b, "|");
    json_array_foreach(columns, i, c) {
        tl_buf_str(b, " "), rep_md(b, tl_json_str(c, "title", ""));
        if (header_unit(c)[0]) tl_buf_str(b, " "), rep_md(b, header_unit(c));
        rep_label l = rep_value_label(c);
        if (l != REP_NONE) tl_buf_fmt(b, "%s%s%s", r->w->open, r->w->label[l], r->w->close);
        tl_buf_str(b, " |");
    }
    tl_buf_str(b, "\n|");
    json_array_foreach(columns, i, c) {
        const json_t *first = json_array_get(json_array_get(json_object_get(k->json, "rows"), 0), i);
        tl_buf_str(b, json_is_string(first) && !tl_str_eq(tl_json_str(c, "align", ""), "right") ? " --- |"
                                                                                                : " --: |");
    }
    json_array_foreach(json_object_get(k->json, "rows"), j, row) {
        tl_buf_str(b, "\n|");
        json_array_foreach(row, i, cell) {
            const char *unit;
            rep_label l;
            tl_buf t;
            tl_buf_init(&t, 0);
            cell_text(&t, cell);
            cell_extra(cell, json_array_get(columns, i), &unit, &l);
            if (unit) tl_buf_fmt(&t, " %s", unit);
            tl_buf_str(b, " "), rep_md(b, json_is_null(cell) ? r->w->missing : t.p);
            if (l != REP_NONE) tl_buf_fmt(b, "%s%s%s", r->w->open, r->w->label[l], r->w->close);
            tl_buf_str(b, " |");
            tl_buf_free(&t);
        }
    }
    tl_buf_str(b, "\n");
    if (k->caption) caption_text(b, r, k, r->w->table);
    source_text(b, r, k);
}

void rep_block_text(tl_buf *b, const rep *r, const rep_block *k) {
    if (strcmp(k->kind, "figure") == 0) {
        tl_buf_str(b, "!["), rep_md(b, tl_json_str(k->spec, "alt", ""));
        tl_buf_fmt(b, "](figures/%s.svg)\n", k->id);
        caption_text(b, r, k, r->w->figure);
        source_text(b, r, k);
    } else if (table_like(k->kind)) {
        table_text(b, r, k);
    } else if (strcmp(k->kind, "formula") == 0) {
        tl_buf_str(b, "**"), rep_md(b, tl_json_str(k->json, "title", r->w->formula)), tl_buf_str(b, "**\n\n");
        rep_tree_text(b, r, json_object_get(k->json, "value"), 0);
    } else {
        if (tl_json_str(k->json, "text", "")[0])
            rep_md(b, tl_json_str(k->json, "text", "")), tl_buf_str(b, "\n\n");
        const char *command = k->command ? k->command : "", *fence = strstr(command, "```") ? "~~~~" : "```";
        tl_buf_fmt(b, "%ssh\n", fence);
        for (const char *p = command; *p; p++) tl_buf_char(b, (unsigned char)*p < 0x20 ? ' ' : *p);
        tl_buf_fmt(b, "\n%s\n", fence);
    }
    if (b->len > 0 && b->p[b->len - 1] == '\n') b->p[--b->len] = 0; /* the fence's own line end follows */
}
