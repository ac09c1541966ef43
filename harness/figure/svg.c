/* What gnuplot wrote is read once as XML (tags balanced, attributes quoted, entities known) and then given
 * what it lacks: a title and description for those who cannot see it, the figure's id and the hash of its
 * data, and ids of its own, since gnuplot's (gpPt0, gnuplot_plot_1, ...) are the same in every figure and
 * collide when several are put into one page. */
#include "figure/figure_impl.h"

#define DEPTH_MAX 64

static bool name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_:-.", c) != NULL;
}

static bool entity(const char *p, const char *end) {
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    for (size_t i = 0; i < TL_COUNT(known); i++) {
        if ((size_t)(end - p) >= strlen(known[i]) && memcmp(p, known[i], strlen(known[i])) == 0) return true;
    }
    const char *q = p + 2;
    if (end - p < 4 || p[1] != '#') return false;
    while (q < end && name_char(*q)) q++;
    return q < end && *q == ';' && q > p + 2;
}

/* Over one tag that starts at p ('<'); NULL when it is broken. *kind: 0 opens, 1 closes, 2 empty. */
static const char *tag(const char *p, const char *end, int *kind) {
    *kind = p + 1 < end && p[1] == '/';
    p += 1 + *kind;
    const char *name = p;
    while (p < end && name_char(*p)) p++;
    if (p == name) return NULL;
    for (;;) {
        while (p < end && strchr(" \t\r\n", *p)) p++;
        if (p >= end) return NULL;
        if (*p == '>') return p + 1;
        if (*p == '/' && p + 1 < end && p[1] == '>' && *kind == 0) {
            *kind = 2;
            return p + 2;
        }
        const char *attr = p;
        while (p < end && name_char(*p)) p++;
        if (p == attr || *kind == 1) return NULL;
        while (p < end && strchr(" \t\r\n", *p)) p++;
        if (p >= end || *p++ != '=') return NULL;
        while (p < end && strchr(" \t\r\n", *p)) p++;
        if (p >= end || (*p != '"' && *p != '\'')) return NULL;
        char q = *p++;
        for (; p < end && *p != q; p++) {
            if (*p == '<' || (*p == '&' && !entity(p, end))) return NULL;
        }
        if (p++ >= end) return NULL;
    }
}

static const char *find(const char *p, const char *end, const char *word) {
    return memmem(p, (size_t)(end - p), word, strlen(word));
}

tl_status svg_check(size_t *marks_out, const char *svg, size_t n, const char *what, tl_err *e) {
    struct {
        const char *p;
        size_t n;
    } open[DEPTH_MAX];
    size_t depth = 0, roots = 0;
    const char *end = svg + n, *p = svg;
    *marks_out = 0;
    if (n < 200) return tl_fail(e, TL_INTERNAL, "%s: gnuplot left %zu bytes", what, n);
    if (!tl_utf8_valid(svg, n)) return tl_fail(e, TL_INTERNAL, "%s: not valid UTF-8", what);
    while (p < end) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x20 && c != '\n' && c != '\t' && c != '\r')
            return tl_fail(e, TL_INTERNAL, "%s: control byte %u", what, c);
        if (c == '&' && !entity(p, end)) return tl_fail(e, TL_INTERNAL, "%s: a bare '&'", what);
        if (c != '<') {
            p++;
            continue;
        }
        const char *close = p[1] == '?'                     ? "?>"
                            : tl_str_starts(p, "<!--")      ? "-->"
                            : tl_str_starts(p, "<![CDATA[") ? "]]>"
                            : p[1] == '!'                   ? ">"
                                                            : NULL;
        if (close != NULL) {
            p = find(p, end, close);
            if (p == NULL) return tl_fail(e, TL_INTERNAL, "%s: a part that does not end", what);
            p += strlen(close);
            continue;
        }
        int kind;
        const char *name = p + (p[1] == '/' ? 2 : 1), *next = tag(p, end, &kind);
        size_t len = 0;
        if (next == NULL) return tl_fail(e, TL_INTERNAL, "%s: broken tag '%.40s'", what, p);
        while (name_char(name[len])) len++;
        if (len == 6 && memcmp(name, "script", 6) == 0)
            return tl_fail(e, TL_INTERNAL, "%s: holds a script", what);
        /* A mark is a <use> with a colour; the white ones are what gnuplot puts behind marks of error bars,
         * those without a colour define the shapes. */
        const char *color =
            len == 3 && memcmp(name, "use", 3) == 0 ? find(p, next ? next : end, " color='") : NULL;
        *marks_out += color != NULL && !tl_str_starts(color, " color='white'");
        if (kind == 0) {
            if (depth == DEPTH_MAX) return tl_fail(e, TL_INTERNAL, "%s: nested too deep", what);
            roots += depth == 0;
            open[depth].p = name;
            open[depth++].n = len;
        } else if (kind == 1 &&
                   (depth == 0 || open[depth - 1].n != len || memcmp(open[depth - 1].p, name, len) != 0)) {
            return tl_fail(e, TL_INTERNAL, "%s: '</%.*s>' closes another tag", what, (int)len, name);
        } else if (kind == 1) {
            depth--;
        }
        p = next;
    }
    if (depth != 0 || roots != 1)
        return tl_fail(e, TL_INTERNAL, "%s: %zu open tags, %zu roots", what, depth, roots);
    return TL_OK;
}

/* ids are written id='x', id="x", '#x', url(#x). Only inside tags: texts keep their '#'. */
static void copy_with_ids(tl_buf *out, const char *p, const char *end, const char *prefix) {
    bool inside = false;
    while (p < end) {
        if (*p == '<') inside = true;
        if (*p == '>') inside = false;
        size_t take = 1;
        bool add = false;
        if (inside && (tl_str_starts(p, " id='") || tl_str_starts(p, " id=\"")))
            take = 5, add = true;
        else if (inside && (tl_str_starts(p, "href='#") || tl_str_starts(p, "href=\"#")))
            take = 7, add = true;
        else if (inside && tl_str_starts(p, "url(#"))
            take = 5, add = true;
        tl_buf_add(out, p, take);
        if (add) tl_buf_str(out, prefix);
        p += take;
    }
}

tl_status svg_finish(tl_buf *out, const char *svg, const fig *f, const char *suffix, const char *data_sha256,
                     tl_err *e) {
    const char *end = svg + strlen(svg), *root = strstr(svg, "<svg");
    const char *after = root ? strchr(root, '>') : NULL;
    if (after == NULL) return tl_fail(e, TL_INTERNAL, "figure '%s': gnuplot's SVG has no <svg>", f->id);
    char *prefix = tl_xprintf("%s%s-", f->id, suffix);
    tl_buf_add(out, svg, (size_t)(root - svg));
    tl_buf_fmt(out, "<svg role=\"img\" aria-labelledby=\"%stitle %sdesc\"", prefix, prefix);
    copy_with_ids(out, root + 4, after + 1, prefix);
    tl_buf_fmt(out, "\n<title id=\"%stitle\">", prefix);
    tl_buf_html(out, f->title ? f->title : f->alt);
    tl_buf_fmt(out, "</title>\n<desc id=\"%sdesc\">", prefix);
    tl_buf_html(out, f->alt);
    tl_buf_fmt(out, "</desc>\n<metadata>tally figure=%s data-sha256=%s</metadata>", f->id, data_sha256);
    const char *p = after + 1, *title = strstr(p, "<title>"),
               *title_end = title ? strstr(title, "</title>") : NULL;
    if (title_end != NULL) {
        copy_with_ids(out, p, title, prefix);
        p = title_end + strlen("</title>");
    }
    copy_with_ids(out, p, end, prefix);
    free(prefix);
    return TL_OK;
}
