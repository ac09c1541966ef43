/* report.md: the source text with its spans replaced, the front matter turned into a heading, and the
 * footnotes of our values at the end. Everything else stays byte for byte what the author wrote. */
#include "report/report_impl.h"

static void head(tl_buf *b, const rep *r) {
    const char *keys[] = {"series", "day", "map"};
    bool any = false;
    tl_buf_str(b, "# "), rep_md(b, tl_json_str(r->front, "title", "")), tl_buf_str(b, "\n\n");
    for (size_t i = 0; i < TL_COUNT(keys); i++) {
        const char *v = tl_json_str(r->front, keys[i], "");
        if (*v == 0) continue;
        tl_buf t;
        tl_buf_init(&t, 0);
        const char *hole = i == 1 ? strstr(r->w->day, "%s") : NULL;
        if (hole) tl_buf_add(&t, r->w->day, (size_t)(hole - r->w->day));
        tl_buf_str(&t, v);
        if (hole) tl_buf_str(&t, hole + 2);
        tl_buf_str(b, any ? " · " : ""), rep_md(b, t.p);
        tl_buf_free(&t);
        any = true;
    }
    if (any) tl_buf_str(b, "\n\n");
    const char *needs = tl_json_str(r->front, "needs", "");
    if (*needs) rep_md(b, needs), tl_buf_str(b, "\n\n");
}

static void span(tl_buf *b, const rep *r, const rep_span *s) {
    if (s->kind == SPAN_OPEN) tl_buf_str(b, "<strong>");
    if (s->kind == SPAN_CLOSE) tl_buf_str(b, "</strong>");
    if (s->kind == SPAN_BLOCK) rep_block_text(b, r, &r->blocks[s->item]);
    if (s->kind != SPAN_VALUE && s->kind != SPAN_BARE) return;
    const rep_value *v = &r->values[s->item];
    if (s->kind == SPAN_VALUE) {
        rep_value_text(b, r, v);
        return;
    }
    tl_buf t;
    tl_buf_init(&t, 0);
    rep_number(&t, v->json);
    rep_md(b, t.p);
    tl_buf_free(&t);
}

void rep_markdown(tl_buf *b, const rep *r) {
    size_t at = r->body + strspn(r->text.p + r->body, "\n");
    head(b, r);
    for (size_t i = 0; i < r->n_spans; i++) {
        const rep_span *s = &r->spans[i];
        if (s->from < at) continue;
        tl_buf_add(b, r->text.p + at, s->from - at);
        span(b, r, s);
        at = s->to;
    }
    tl_buf_add(b, r->text.p + at, r->text.len - at);
    if (b->len > 0 && b->p[b->len - 1] != '\n') tl_buf_str(b, "\n");
    for (size_t n = 1; n <= r->n_notes; n++) {
        for (size_t i = 0; i < r->n_values; i++) {
            if (r->values[i].note != n) continue;
            tl_buf_fmt(b, "%s[^tally-%zu]: ", n == 1 ? "\n" : "", n);
            rep_source_text(b, r, r->values[i].json, 0);
            tl_buf_str(b, "\n");
        }
    }
}
