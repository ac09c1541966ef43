/* A record's bytes as JSON. Engines cut characters in two and escape halves of surrogate pairs; one such token must
 * not cost the whole record, so what is no character becomes U+FFFD, and the caller learns it. */
#include <ctype.h>

#include "engine/dialect_impl.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* Length of the valid UTF-8 character at p, 0 when there is none (RFC 3629: no overlong forms, no surrogates). */
static size_t utf8_len(const unsigned char *p, size_t n)
{
    static const struct {
        unsigned char lo, hi, second_lo, second_hi;
        size_t len;
    } forms[] = {
        { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
        { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
        { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };
    if (p[0] < 0x80) return p[0] != 0;
    for (size_t f = 0; f < TL_COUNT(forms); f++) {
        if (p[0] < forms[f].lo || p[0] > forms[f].hi) continue;
        if (n < forms[f].len || p[1] < forms[f].second_lo || p[1] > forms[f].second_hi) return 0;
        for (size_t i = 2; i < forms[f].len; i++)
            if ((p[i] & 0xc0) != 0x80) return 0;
        return forms[f].len;
    }
    return 0;
}

static void add_clean(tl_buf *b, const char *p, size_t n, size_t max)
{
    for (size_t i = 0; i < n && (max == 0 || b->len < max);) {
        const size_t len = utf8_len((const unsigned char *)p + i, n - i);
        if (len) tl_buf_add(b, p + i, len);
        else tl_buf_str(b, REPLACEMENT);
        i += len ? len : 1;
    }
}

char *tl_dialect_clean(const char *p, size_t n, size_t max)
{
    tl_buf b;
    tl_buf_init(&b, 0);
    add_clean(&b, p, n, max);
    char *s = tl_buf_take(&b);
    tl_buf_free(&b);
    for (char *c = s; max && *c; c++)
        if ((unsigned char)*c < 0x20) *c = ' ';
    return s;
}

/* The code unit of "\uXXXX" at p, or -1. */
static long escape_at(const char *p, size_t n)
{
    long v = 0;
    if (n < 6 || p[0] != '\\' || p[1] != 'u') return -1;
    for (size_t i = 2; i < 6; i++) {
        const int c = tolower((unsigned char)p[i]);
        if (!isxdigit(c)) return -1;
        v = v * 16 + (isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    return v;
}

/* Replaces \u0000 and lone surrogate escapes; other escapes are copied whole so that "\\u0000" stays what it is. */
static void add_escapes(tl_buf *b, const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        const long u = escape_at(p + i, n - i);
        const long next = u >= 0 ? escape_at(p + i + 6, n - i - 6) : -1;
        size_t len = u >= 0 ? 6 : p[i] == '\\' && i + 1 < n ? 2 : 1;
        const bool pair = u >= 0xd800 && u < 0xdc00 && next >= 0xdc00 && next < 0xe000;
        if (pair) len = 12;
        if (u == 0 || (u >= 0xd800 && u < 0xe000 && !pair)) tl_buf_str(b, REPLACEMENT);
        else tl_buf_add(b, p + i, len);
        i += len;
    }
}

json_t *tl_dialect_json(const char *p, size_t n, bool *replaced)
{
    json_error_t je;
    json_t *j = json_loadb(p, n, 0, &je);
    if (j) return j;
    tl_buf clean, escaped;
    tl_buf_init(&clean, 0);
    tl_buf_init(&escaped, 0);
    add_clean(&clean, p, n, 0);
    add_escapes(&escaped, clean.p, clean.len);
    const bool changed = escaped.len != n || memcmp(escaped.p, p, n) != 0;
    j = json_loadb(escaped.p, escaped.len, JSON_DECODE_INT_AS_REAL, &je);
    if (j) *replaced = changed;
    tl_buf_free(&clean);
    tl_buf_free(&escaped);
    return j;
}
