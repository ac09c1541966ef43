/* CommonMark's flanking rule leaves **「…」** between Han characters as literal stars
 * (https://github.com/commonmark/commonmark-spec/issues/650). Pairs that it would refuse although the author
 * plainly means them become spans of ours: <strong> in Markdown, our own nodes in HTML. */
#include "report/report_impl.h"

static unsigned decode(const char *s, size_t at) {
    unsigned char c = (unsigned char)s[at];
    if (c < 0x80) return c;
    if (c < 0xe0) return (c & 31u) << 6 | ((unsigned char)s[at + 1] & 63u);
    if (c < 0xf0)
        return (c & 15u) << 12 | ((unsigned char)s[at + 1] & 63u) << 6 | ((unsigned char)s[at + 2] & 63u);
    return 0x10000;
}

static unsigned before(const rep *r, size_t at, size_t from) {
    if (at <= from) return '\n';
    do at--;
    while (at > from && ((unsigned char)r->text.p[at] & 0xc0) == 0x80);
    return decode(r->text.p, at);
}

static bool space(unsigned c) {
    return c == 0 || c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0xa0 || c == 0x3000 ||
           (c >= 0x2000 && c <= 0x200a);
}

static bool punct(unsigned c) {
    if (c < 0x80)
        return c > 0x20 && !(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z') && c != 0x7f;
    return c == 0xa7 || c == 0xb6 || c == 0xb7 || (c >= 0x2010 && c <= 0x2027) ||
           (c >= 0x2030 && c <= 0x205e) || (c >= 0x3001 && c <= 0x3003) || (c >= 0x3008 && c <= 0x3011) ||
           (c >= 0x3014 && c <= 0x301f) || c == 0x30fb || (c >= 0xfe10 && c <= 0xfe6f) ||
           (c >= 0xff01 && c <= 0xff0f) || (c >= 0xff1a && c <= 0xff20) || (c >= 0xff3b && c <= 0xff3d) ||
           (c >= 0xff5b && c <= 0xff65);
}

typedef struct run {
    size_t at;
    unsigned before, after;
    bool left, right;
} run;

static void found(rep *r, const run *a, const run *b) {
    if (space(a->after) || space(b->before) || (a->left && b->right)) return;
    if (a->before < 0x80 && a->after < 0x80 && b->before < 0x80 && b->after < 0x80) return;
    TL_PUSH(r->spans, r->n_spans, r->cap_spans,
            ((rep_span){.kind = SPAN_OPEN, .from = a->at, .to = a->at + 2, .item = SIZE_MAX}));
    TL_PUSH(r->spans, r->n_spans, r->cap_spans,
            ((rep_span){.kind = SPAN_CLOSE, .from = b->at, .to = b->at + 2, .item = SIZE_MAX}));
}

void rep_emphasis(rep *r, size_t from, size_t to) {
    const char *s = r->text.p;
    run open = {0};
    bool have = false;
    for (size_t i = from; i < to; i++) {
        if (r->mask[i] != M_PROSE || s[i] == '\\') {
            i += s[i] == '\\' && r->mask[i] == M_PROSE;
            continue;
        }
        if (s[i] == '|') have = false; /* a pair does not reach into the next cell */
        if (s[i] != '*') continue;
        size_t n = 0;
        while (i + n < to && s[i + n] == '*') n++;
        if (n == 2) {
            run x = {.at = i, .before = before(r, i, from), .after = i + n < to ? decode(s, i + n) : '\n'};
            x.left = !space(x.after) && (!punct(x.after) || space(x.before) || punct(x.before));
            x.right = !space(x.before) && (!punct(x.before) || space(x.after) || punct(x.after));
            if (have)
                found(r, &open, &x);
            else
                open = x;
            have = !have;
        }
        i += n - 1;
    }
}
