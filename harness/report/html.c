/* From text to the body of the page: cmark-gfm's tree in safe mode, with our own HTML put in as custom nodes
 * (the only HTML that safe mode prints). What the tree shows and the source's author should know (raw HTML,
 * links to scripts, pictures that would need the network) is a problem. */
#include "report/report_impl.h"

#include <strings.h>

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>

#define OPEN_MARK "\xee\x80\x82"
#define CLOSE_MARK "\xee\x80\x83"

static cmark_node *custom(cmark_node_type type, const char *html) {
    cmark_node *n = cmark_node_new(type);
    cmark_node_set_on_enter(n, html);
    return n;
}

static cmark_node *text_node(const char *p, size_t n) {
    char *s = tl_xstrndup(p, n);
    cmark_node *t = cmark_node_new(CMARK_NODE_TEXT);
    cmark_node_set_literal(t, s);
    free(s);
    return t;
}

static size_t from_of(const rep *r, cmark_node *n) {
    while (n && cmark_node_get_start_line(n) == 0) n = cmark_node_parent(n);
    return n ? rep_line_start(r, cmark_node_get_start_line(n) + rep_line_of(r, r->body) - 1) : r->body;
}

/* The source from after the front matter, our emphasis marks as private characters. */
static void feed(tl_buf *b, const rep *r) {
    size_t at = r->body;
    for (size_t i = 0; i < r->n_spans; i++) {
        const rep_span *s = &r->spans[i];
        if (s->kind != SPAN_OPEN && s->kind != SPAN_CLOSE) continue;
        tl_buf_add(b, r->text.p + at, s->from - at);
        tl_buf_str(b, s->kind == SPAN_OPEN ? OPEN_MARK : CLOSE_MARK);
        at = s->to;
    }
    tl_buf_add(b, r->text.p + at, r->text.len - at);
}

/* Both marks of a pair must stand under one parent, or the HTML would not nest. */
typedef struct strong {
    cmark_node *parent; /* of the mark that is open; NULL when none is */
    bool crossed;
} strong;

static void strong_mark(strong *b, cmark_node *parent, bool open) {
    if (open ? b->parent != NULL : b->parent != parent) b->crossed = true;
    b->parent = open ? parent : NULL;
}

/* TEXT: emphasis marks and hand-written labels become nodes of ours. */
static void split_text(const rep *r, cmark_node *n, strong *balance) {
    const char *s = cmark_node_get_literal(n), *start = s;
    bool changed = false;
    char *copy = tl_xstrdup(s);
    s = start = copy;
    while (*s) {
        size_t len = 0;
        tl_buf b;
        tl_buf_init(&b, 0);
        if (tl_str_starts(s, OPEN_MARK))
            len = 3, tl_buf_str(&b, "<strong>"), strong_mark(balance, cmark_node_parent(n), true);
        else if (tl_str_starts(s, CLOSE_MARK))
            len = 3, tl_buf_str(&b, "</strong>"), strong_mark(balance, cmark_node_parent(n), false);
        else if (*s == '[' || (unsigned char)*s == 0xe3)
            rep_chip_html(&b, r, rep_label_at(s, &len), 0);
        if (len > 0) {
            if (s > start) cmark_node_insert_before(n, text_node(start, (size_t)(s - start)));
            cmark_node_insert_before(n, custom(CMARK_NODE_CUSTOM_INLINE, b.p));
            start = s = s + len;
            changed = true;
        } else {
            s++;
        }
        tl_buf_free(&b);
    }
    if (changed) {
        if (*start) cmark_node_insert_before(n, text_node(start, strlen(start)));
        cmark_node_unlink(n);
        cmark_node_free(n);
    }
    free(copy);
}

static bool value_node(rep *r, cmark_node *n, size_t *seen) {
    const char *s = cmark_node_get_literal(n);
    if (s == NULL || (s[0] != '=' && s[0] != '~') || s[1] != ' ') return false;
    const char *expr = s + 2 + strspn(s + 2, " ");
    size_t len = strlen(expr);
    while (len > 0 && expr[len - 1] == ' ') len--;
    for (size_t i = 0; i < r->n_values; i++) {
        const rep_value *v = &r->values[i];
        if (strlen(v->expr) != len || memcmp(v->expr, expr, len) != 0) continue;
        ++*seen;
        if (v->json == NULL) return true;
        tl_buf b;
        tl_buf_init(&b, 0);
        if (*s == '=') {
            rep_value_html(&b, r, v->json, v->note);
        } else {
            tl_buf t;
            tl_buf_init(&t, 0);
            rep_number(&t, v->json);
            tl_buf_str(&b, "<span class=\"v\">");
            tl_buf_html(&b, t.p);
            tl_buf_str(&b, "</span>");
            tl_buf_free(&t);
        }
        cmark_node *c = custom(CMARK_NODE_CUSTOM_INLINE, b.p);
        cmark_node_replace(n, c);
        cmark_node_free(n);
        tl_buf_free(&b);
        return true;
    }
    return false;
}

static bool block_node(rep *r, cmark_node *n, size_t *seen) {
    const char *info = cmark_node_get_fence_info(n), *kind;
    char *word = tl_xstrndup(info ? info : "", strcspn(info ? info : "", " \t"));
    bool ours = rep_block_known(word, &kind);
    free(word);
    if (!ours) return false;
    if (*seen < r->n_blocks && r->blocks[*seen].html != NULL) {
        cmark_node *c = custom(CMARK_NODE_CUSTOM_BLOCK, r->blocks[*seen].html);
        cmark_node_replace(n, c);
        cmark_node_free(n);
    }
    ++*seen;
    return true;
}

static void check_link(rep *r, cmark_node *n, bool image) {
    static const char *const ok[] = {"http://", "https://", "mailto:", "#"};
    const char *url = cmark_node_get_url(n);
    bool good = url == NULL || *url == 0;
    for (size_t i = 0; i < TL_COUNT(ok) && !good; i++) good = strncasecmp(url, ok[i], strlen(ok[i])) == 0;
    if (!good) good = strcspn(url, ":") >= strcspn(url, "/?#"); /* a relative path has no scheme */
    if (image)
        rep_problem_add(r, from_of(r, n), "draw it with a figure block, or link to it",
                        "the picture '%.80s' would have to be loaded from elsewhere", url ? url : "");
    else if (!good)
        rep_problem_add(r, from_of(r, n), "https://, http://, mailto:, # or a relative path",
                        "the link '%.80s' is not safe", url);
}

/* A table cell takes none of our nodes (cmark_node_insert_* refuses), so tables are taken out of the tree:
 * each cell's children move into a paragraph of their own, and when those are done the table is written by
 * us. Cards on a phone: each body cell also says its column's header. */
typedef struct grid {
    cmark_node *table, **cells; /* rows * columns documents of one paragraph, owned */
    size_t rows, columns;
    char *headers[64];
    uint8_t align[64];
} grid;

static grid grid_take(cmark_node *table) {
    grid g = {.table = table, .columns = cmark_gfm_extensions_get_table_columns(table)};
    const uint8_t *align = cmark_gfm_extensions_get_table_alignments(table);
    if (g.columns > 64) g.columns = 64;
    for (size_t i = 0; i < g.columns; i++) g.align[i] = align ? align[i] : 0;
    for (cmark_node *row = cmark_node_first_child(table); row; row = cmark_node_next(row)) g.rows++;
    g.cells = tl_xalloc((g.rows * g.columns + 1) * sizeof(cmark_node *));
    size_t y = 0;
    for (cmark_node *row = cmark_node_first_child(table); row; row = cmark_node_next(row), y++) {
        cmark_node *c = cmark_node_first_child(row);
        for (size_t x = 0; x < g.columns; x++) {
            /* Under a document of its own: the renderer asks a paragraph for its parent. */
            cmark_node *root = g.cells[y * g.columns + x] = cmark_node_new(CMARK_NODE_DOCUMENT);
            cmark_node *p = cmark_node_new(CMARK_NODE_PARAGRAPH);
            cmark_node_append_child(root, p);
            for (cmark_node *k; c && (k = cmark_node_first_child(c));) {
                cmark_node_unlink(k);
                cmark_node_append_child(p, k);
            }
            if (y == 0) {
                char *t = cmark_render_plaintext(root, CMARK_OPT_DEFAULT, 0);
                t[strcspn(t, "\n")] = 0;
                g.headers[x] = t;
            }
            if (c) c = cmark_node_next(c);
        }
    }
    return g;
}

static void cell_html(tl_buf *b, const grid *g, size_t y, size_t x, int options) {
    char *html = cmark_render_html(g->cells[y * g->columns + x], options, NULL);
    size_t n = strlen(html), lead = tl_str_starts(html, "<p>") ? 3 : 0;
    while (n > 0 && html[n - 1] == '\n') n--;
    if (lead && n >= 7 && memcmp(html + n - 4, "</p>", 4) == 0) n -= 4;
    const char *tag = y == 0 ? "th" : "td", *css = g->align[x] == 'r'   ? " class=\"n\""
                                                   : g->align[x] == 'c' ? " class=\"mid\""
                                                                        : " class=\"l\"";
    tl_buf_fmt(b, "<%s%s>", tag, css);
    if (y > 0)
        tl_buf_str(b, "<span class=\"th\">"), tl_buf_html(b, g->headers[x]), tl_buf_str(b, "</span><span>");
    tl_buf_add(b, html + lead, n - lead);
    tl_buf_fmt(b, "%s</%s>", y > 0 ? "</span>" : "", tag);
    free(html);
}

static void grid_put(grid *g, int options) {
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_buf_fmt(&b, "<div class=\"tbl%s\"><table>", g->columns > 3 ? " cards" : "");
    for (size_t y = 0; y < g->rows; y++) {
        tl_buf_str(&b, y == 0 ? "<thead><tr>" : y == 1 ? "<tbody>\n<tr>" : "<tr>");
        for (size_t x = 0; x < g->columns; x++) cell_html(&b, g, y, x, options);
        tl_buf_str(&b, y == 0 ? "</tr></thead>" : "</tr>\n");
    }
    tl_buf_fmt(&b, "%s</table></div>\n", g->rows > 1 ? "</tbody>" : "");
    cmark_node *c = custom(CMARK_NODE_CUSTOM_BLOCK, b.p);
    cmark_node_replace(g->table, c);
    cmark_node_free(g->table);
    for (size_t i = 0; i < g->rows * g->columns; i++) cmark_node_free(g->cells[i]);
    for (size_t x = 0; x < g->columns; x++) free(g->headers[x]);
    free(g->cells);
    tl_buf_free(&b);
}

static void raw_html(rep *r, cmark_node *n) {
    const char *s = cmark_node_get_literal(n);
    s = s ? s + strspn(s, " ") : "";
    if (!tl_str_starts(s, "<!--"))
        rep_problem_add(r, from_of(r, n), "write it in Markdown (a comment <!-- --> is allowed)",
                        "raw HTML is not printed: '%.40s'", s);
}

typedef struct nodes {
    cmark_node **v;
    size_t n, cap;
} nodes;

static nodes collect(cmark_node *root) {
    nodes list = {0};
    cmark_iter *it = cmark_iter_new(root);
    for (cmark_event_type ev; (ev = cmark_iter_next(it)) != CMARK_EVENT_DONE;) {
        if (ev == CMARK_EVENT_ENTER) TL_PUSH(list.v, list.n, list.cap, cmark_iter_get_node(it));
    }
    cmark_iter_free(it);
    return list;
}

static bool first_heading(const rep *r, cmark_node *n) {
    if (cmark_node_get_type(n) != CMARK_NODE_HEADING || cmark_node_get_heading_level(n) != 1 ||
        cmark_node_previous(n))
        return false;
    char *t = cmark_render_plaintext(n, CMARK_OPT_DEFAULT, 0);
    t[strcspn(t, "\n")] = 0;
    bool same = tl_str_eq(t, tl_json_str(r->front, "title", NULL));
    free(t);
    return same;
}

static void surgery(rep *r, cmark_node *root, int options) {
    size_t values = 0, blocks = 0, want_values = 0, want_blocks = 0;
    strong balance = {0};
    nodes list;
    cmark_consolidate_text_nodes(root);
    list = collect(root);
    grid *grids = NULL;
    size_t n_grids = 0, cap_grids = 0;
    for (size_t i = 0; i < list.n; i++) { /* while every node still knows its line */
        cmark_node_type t = cmark_node_get_type(list.v[i]);
        if (t == CMARK_NODE_LINK || t == CMARK_NODE_IMAGE) check_link(r, list.v[i], t == CMARK_NODE_IMAGE);
        if (t == CMARK_NODE_HTML_BLOCK || t == CMARK_NODE_HTML_INLINE) raw_html(r, list.v[i]);
    }
    for (size_t i = 0; i < list.n; i++) {
        if (strcmp(cmark_node_get_type_string(list.v[i]), "table") == 0)
            TL_PUSH(grids, n_grids, cap_grids, grid_take(list.v[i]));
    }
    for (size_t i = 0; i < list.n; i++) {
        cmark_node *n = list.v[i];
        cmark_node_type t = cmark_node_get_type(n);
        if (t == CMARK_NODE_CODE)
            value_node(r, n, &values);
        else if (t == CMARK_NODE_CODE_BLOCK)
            block_node(r, n, &blocks);
        else if (t == CMARK_NODE_TEXT)
            split_text(r, n, &balance);
    }
    for (size_t i = 0; i < n_grids; i++) grid_put(&grids[i], options);
    free(grids);
    cmark_node *first = cmark_node_first_child(root);
    if (first && first_heading(r, first)) {
        cmark_node_unlink(first);
        cmark_node_free(first);
    }
    for (size_t i = 0; i < r->n_spans; i++) {
        want_values += r->spans[i].kind == SPAN_VALUE || r->spans[i].kind == SPAN_BARE;
        want_blocks += r->spans[i].kind == SPAN_BLOCK;
    }
    if (values != want_values || blocks != want_blocks) {
        rep_problem_add(r, r->body, "look for an unpaired ` or an indented line near a directive",
                        "%zu values and %zu blocks are written, but Markdown sees %zu and %zu", want_values,
                        want_blocks, values, blocks);
    }
    if (balance.crossed || balance.parent)
        rep_problem_add(r, r->body, "look at the ** near a link or a quote",
                        "emphasis that crosses other marks");
    free(list.v);
}

/* cmark marks its footnotes with attributes that have no value; the page is well-formed XML without them. A
 * raw '"' stands in tags only (texts have &quot;), so this cannot touch what the author wrote. */
static void add_without_bare_attributes(tl_buf *b, const char *s) {
    static const char *const bare[] = {"\" data-footnote-ref", "\" data-footnotes",
                                       "\" data-footnote-backref"};
    while (*s) {
        size_t skip = 0;
        for (size_t i = 0; i < TL_COUNT(bare) && *s == '"'; i++) {
            size_t n = strlen(bare[i]);
            if (strncmp(s, bare[i], n) == 0 && (s[n] == '>' || s[n] == ' ')) skip = n;
        }
        tl_buf_char(b, *s);
        s += skip ? skip : 1;
    }
}

void rep_html(rep *r) {
    static const char *const names[] = {"table", "strikethrough", "autolink"};
    const int options = CMARK_OPT_FOOTNOTES | CMARK_OPT_VALIDATE_UTF8;
    tl_buf in;
    tl_buf_init(&in, 0);
    feed(&in, r);
    cmark_gfm_core_extensions_ensure_registered();
    cmark_parser *parser = cmark_parser_new(options);
    for (size_t i = 0; i < TL_COUNT(names); i++) {
        cmark_syntax_extension *x = cmark_find_syntax_extension(names[i]);
        if (x) cmark_parser_attach_syntax_extension(parser, x);
    }
    cmark_parser_feed(parser, in.p, in.len);
    cmark_node *root = cmark_parser_finish(parser);
    surgery(r, root, options);
    char *html = cmark_render_html(root, options, cmark_parser_get_syntax_extensions(parser));
    add_without_bare_attributes(&r->html, html);
    free(html);
    cmark_node_free(root);
    cmark_parser_free(parser);
    tl_buf_free(&in);
}
