/* Text helpers: strict numbers, near names, UTF-8 width, escaping. None of them depends on the locale. */
#include "base/base.h"

#include <errno.h>
#include <math.h>

bool tl_str_eq(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool tl_str_starts(const char *s, const char *prefix) {
    return s != NULL && strncmp(s, prefix, strlen(prefix)) == 0;
}

bool tl_str_ends(const char *s, const char *suffix) {
    size_t n = s ? strlen(s) : 0, m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool tl_parse_i64(const char *s, int64_t *out) {
    if (s == NULL || *s == 0 || strchr(" \t\n+", *s)) return false;
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno != 0 || *end != 0 || end == s) return false;
    *out = v;
    return true;
}

bool tl_parse_f64(const char *s, double *out) {
    if (s == NULL || *s == 0 || strspn(s, "0123456789+-.eE") != strlen(s)) return false;
    char *end;
    double v = strtod(s, &end); /* the C locale: tally sets no LC_NUMERIC */
    if (*end != 0 || end == s || !isfinite(v)) return false;
    *out = v;
    return true;
}

void tl_fmt_f64(char out[32], double x) {
    if (!isfinite(x)) {
        memcpy(out, "null", 5);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, x);
        if (strtod(out, NULL) == x) return;
    }
}

/* Optimal string alignment: a swap of two neighbours is one edit, for it is the commonest slip of all. */
static size_t distance(const char *a, const char *b) {
    enum { LONGEST = 64 };
    size_t n = strlen(a), m = strlen(b), rows[3][LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return 99;
    for (size_t j = 0; j <= m; j++) rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *up = rows[(i + 2) % 3], *upup = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best) best = up[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && upup[j - 2] + 1 < best) best = upup[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *tl_nearest(const char *word, const char *const *names, size_t n) {
    const char *best = NULL;
    size_t best_d = 0;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, names[i]);
        if (best == NULL || d < best_d) {
            best = names[i];
            best_d = d;
        }
    }
    size_t limit = strlen(word) / 3 + 1;
    return best != NULL && best_d <= limit ? best : NULL;
}

/* Decodes one character at s (n bytes left); its length, or 0 when it is not valid UTF-8. */
static size_t decode(const unsigned char *s, size_t n, uint32_t *cp) {
    if (n == 0) return 0;
    if (s[0] < 0x80) return *cp = s[0], 1;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (len == 0 || len > n || s[0] > 0xf4) return 0;
    uint32_t c = s[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        c = (c << 6) | (s[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
    *cp = c;
    return len;
}

bool tl_utf8_valid(const char *s, size_t n) {
    uint32_t cp;
    for (size_t i = 0, len; i < n; i += len) {
        len = decode((const unsigned char *)s + i, n - i, &cp);
        if (len == 0 || cp == 0) return false;
    }
    return true;
}

static int width(uint32_t c) {
    static const struct {
        uint32_t lo, hi;
        int w;
    } ranges[] = {{0, 0x1f, 0},           {0x7f, 0x9f, 0},        {0x300, 0x36f, 0},      {0x1100, 0x115f, 2},
                  {0x200b, 0x200f, 0},    {0x2e80, 0x303e, 2},    {0x3041, 0xa4cf, 2},    {0xac00, 0xd7a3, 2},
                  {0xf900, 0xfaff, 2},    {0xfe00, 0xfe0f, 0},    {0xfe30, 0xfe6f, 2},    {0xff00, 0xff60, 2},
                  {0xffe0, 0xffe6, 2},    {0x1f300, 0x1faff, 2},  {0x20000, 0x3fffd, 2}};
    for (size_t i = 0; i < TL_COUNT(ranges); i++)
        if (c >= ranges[i].lo && c <= ranges[i].hi) return ranges[i].w;
    return 1;
}

int tl_utf8_width(const char *s) {
    int w = 0;
    uint32_t cp;
    for (size_t n = strlen(s), i = 0, len; i < n; i += len) {
        len = decode((const unsigned char *)s + i, n - i, &cp);
        if (len == 0) len = 1, w++;
        else w += width(cp);
    }
    return w;
}

void tl_buf_html(tl_buf *b, const char *s) {
    uint32_t cp;
    for (size_t n = s ? strlen(s) : 0, i = 0, len; i < n; i += len) {
        len = decode((const unsigned char *)s + i, n - i, &cp);
        if (len == 0 || (cp < 0x20 && cp != '\n' && cp != '\t') || cp == 0x7f) {
            len = len ? len : 1;
            tl_buf_str(b, "\xef\xbf\xbd");
        } else if (cp == '&') tl_buf_str(b, "&amp;");
        else if (cp == '<') tl_buf_str(b, "&lt;");
        else if (cp == '>') tl_buf_str(b, "&gt;");
        else if (cp == '"') tl_buf_str(b, "&quot;");
        else if (cp == '\'') tl_buf_str(b, "&#39;");
        else tl_buf_add(b, s + i, len);
    }
}

void tl_buf_shell(tl_buf *b, const char *s) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    if (*s && strspn(s, plain) == strlen(s)) {
        tl_buf_str(b, s);
        return;
    }
    tl_buf_char(b, '\'');
    for (; *s; s++) {
        if (*s == '\'') tl_buf_str(b, "'\\''");
        else tl_buf_char(b, *s);
    }
    tl_buf_char(b, '\'');
}
