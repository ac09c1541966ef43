/* From text to the body of the page: cmark-gfm's tree in safe mode, with our own HTML put in as custom nodes (the only
 * HTML that safe mode prints). What the tree shows and the source's author should know (raw HTML, links to scripts,
 * pictures that would need the network) is a problem. */
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
        if (tl_str_starts(s, OPEN_MARK)) len = 3, tl_buf_str(&b, "<strong>"), strong_mark(balance, cmark_node_parent(n), true);
        else if (tl_str_starts(s, CLOSE_MARK)) len = 3, tl_buf_str(&b, "</strong>"), strong_mark(balance, cmark_node_parent(n), false);
        else if (*s == '[' || (unsigned char)*s == 0xe3) rep_chip_html(&b, r, rep_label_at(s, &len), 0);
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
    if (image) rep_problem_add(r, from_of(r, n), "draw it with a figure block, or link to it", "the picture '%.80s' would have to be loaded from elsewhere", url ? url : "");
    else if (!good) rep_problem_add(r, from_of(r, n), "https://, http://, mailto:, # or a relative path", "the link '%.80s' is not safe", url);
}

/* Cards on a phone: each body cell says its column's header. */
static void table_node(rep *r, cmark_node *table) {
    char *headers[64] = {0};
    size_t n = 0, i;
    for (cmark_node *row = cmark_node_first_child(table); row; row = cmark_node_next(row)) {
        bool head = row == cmark_node_first_child(table);
        i = 0;
        for (cmark_node *c = cmark_node_first_child(row); c && i < 64; c = cmark_node_next(c), i++) {
            if (head) {
                char *t = cmark_render_plaintext(c, CMARK_OPT_DEFAULT, 0);
                headers[n++] = tl_xstrdup(t);
                headers[n - 1][strcspn(headers[n - 1], "\n")] = 0;
                free(t);
            } else {
                tl_buf b;
                tl_buf_init(&b, 0);
                tl_buf_str(&b, "<span class=\"th\">");
                tl_buf_html(&b, headers[i] ? headers[i] : "");
                tl_buf_str(&b, "</span>");
                cmark_node_prepend_child(c, custom(CMARK_NODE_CUSTOM_INLINE, b.p));
                tl_buf_free(&b);
            }
        }
    }
    cmark_node_insert_before(table, custom(CMARK_NODE_CUSTOM_BLOCK, n > 3 ? "<div class=\"tbl cards\">" : "<div class=\"tbl\">"));
    cmark_node_insert_after(table, custom(CMARK_NODE_CUSTOM_BLOCK, "</div>"));
    for (i = 0; i < n; i++) free(headers[i]);
    TL_UNUSED(r);
}

static void raw_html(rep *r, cmark_node *n) {
    const char *s = cmark_node_get_literal(n);
    s = s ? s + strspn(s, " ") : "";
    if (!tl_str_starts(s, "<!--")) rep_problem_add(r, from_of(r, n), "write it in Markdown (a comment <!-- --> is allowed)", "raw HTML is not printed: '%.40s'", s);
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
    if (cmark_node_get_type(n) != CMARK_NODE_HEADING || cmark_node_get_heading_level(n) != 1 || cmark_node_previous(n)) return false;
    char *t = cmark_render_plaintext(n, CMARK_OPT_DEFAULT, 0);
    t[strcspn(t, "\n")] = 0;
    bool same = tl_str_eq(t, tl_json_str(r->front, "title", NULL));
    free(t);
    return same;
}

static void surgery(rep *r, cmark_node *root) {
    size_t values = 0, blocks = 0, want_values = 0, want_blocks = 0;
    strong balance = {0};
    nodes list;
    cmark_consolidate_text_nodes(root);
    list = collect(root);
    /* Tables first: their headers are read as text before labels in them become chips. */
    for (size_t i = 0; i < list.n; i++) {
        if (strcmp(cmark_node_get_type_string(list.v[i]), "table") == 0) table_node(r, list.v[i]);
    }
    for (size_t i = 0; i < list.n; i++) {
        cmark_node *n = list.v[i];
        cmark_node_type t = cmark_node_get_type(n);
        if (t == CMARK_NODE_CODE) value_node(r, n, &values);
        else if (t == CMARK_NODE_CODE_BLOCK) block_node(r, n, &blocks);
        else if (t == CMARK_NODE_LINK || t == CMARK_NODE_IMAGE) check_link(r, n, t == CMARK_NODE_IMAGE);
        else if (t == CMARK_NODE_HTML_BLOCK || t == CMARK_NODE_HTML_INLINE) raw_html(r, n);
        else if (t == CMARK_NODE_TEXT) split_text(r, n, &balance);
    }
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
                        "%zu values and %zu blocks are written, but Markdown sees %zu and %zu", want_values, want_blocks, values, blocks);
    }
    if (balance.crossed || balance.parent) rep_problem_add(r, r->body, "look at the ** near a link or a quote", "emphasis that crosses other marks");
    free(list.v);
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
    surgery(r, root);
    char *html = cmark_render_html(root, options, cmark_parser_get_syntax_extensions(parser));
    tl_buf_str(&r->html, html);
    free(html);
    cmark_node_free(root);
    cmark_parser_free(parser);
    tl_buf_free(&in);
}
