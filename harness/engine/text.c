/* The engine's log as text, and the adapter's expressions over its lines. POSIX extended expressions, one line at a
 * time: the log of a start is some hundred lines, and nothing here runs while anything is timed. */
#include <regex.h>

#include "engine/engine_impl.h"

#define LOG_HALF ((long)8 << 20)
#define GROUPS_MAX 8

size_t tl_engine_log_size(const char *path) {
    tl_file_facts f;
    if (tl_file_stat(&f, path, NULL) != TL_OK || !f.exists) return 0;
    return (size_t)f.size_bytes;
}

static void read_span(tl_buf *out, FILE *f, long from, long n) {
    char block[16384];
    if (fseek(f, from, SEEK_SET) != 0) return;
    while (n > 0) {
        size_t want = n < (long)sizeof block ? (size_t)n : sizeof block;
        size_t got = fread(block, 1, want, f);
        if (got == 0) return;
        for (size_t i = 0; i < got; i++)
            if (block[i] == '\0') block[i] = ' ';
        tl_buf_add(out, block, got);
        n -= (long)got;
    }
}

void tl_engine_log_text(tl_buf *out, const char *path, size_t start) {
    FILE *f = path ? fopen(path, "rb") : NULL;
    if (!f) return;
    long size = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
    long from = (long)start < size ? (long)start : size;
    if (size - from <= 2 * LOG_HALF) {
        read_span(out, f, from, size - from);
    } else {
        read_span(out, f, from, LOG_HALF);
        tl_buf_char(out, '\n');
        read_span(out, f, size - LOG_HALF, LOG_HALF);
    }
    (void)fclose(f);
}

/* Copies the next line into *line and moves on; false at the end. */
static bool next_line(tl_buf *line, const char **p) {
    if (**p == '\0') return false;
    const char *end = strchr(*p, '\n');
    size_t n = end ? (size_t)(end - *p) : strlen(*p);
    tl_buf_clear(line);
    tl_buf_add(line, *p, n);
    while (line->len > 0 && line->p[line->len - 1] == '\r') line->p[--line->len] = '\0';
    *p += n + (end ? 1 : 0);
    return true;
}

static void take_groups(char **out, size_t n_out, const char *line, const regmatch_t *m) {
    for (size_t i = 0; i < n_out; i++) {
        free(out[i]);
        out[i] = NULL;
        if (i + 1 < GROUPS_MAX && m[i + 1].rm_so >= 0)
            out[i] = tl_xstrndup(line + m[i + 1].rm_so, (size_t)(m[i + 1].rm_eo - m[i + 1].rm_so));
    }
}

/* An expression that does not compile matches nothing and is said aloud: adapters are data that users write. */
static bool compile(regex_t *re, const char *pattern) {
    if (regcomp(re, pattern, REG_EXTENDED) == 0) return true;
    tl_log(TL_LOG_ERROR, "engine adapter: bad expression '%s'", pattern);
    return false;
}

bool tl_engine_match(char **out, size_t n_out, const char *text, const char *pattern, bool last) {
    regex_t re;
    regmatch_t m[GROUPS_MAX];
    bool found = false;
    if (!compile(&re, pattern)) return false;
    tl_buf line;
    tl_buf_init(&line, 0);
    while (next_line(&line, &text)) {
        if (regexec(&re, line.p, GROUPS_MAX, m, 0) != 0) continue;
        take_groups(out, n_out, line.p, m);
        found = true;
        if (!last) break;
    }
    tl_buf_free(&line);
    regfree(&re);
    return found;
}

void tl_engine_match_all(const char *text, const char *pattern, size_t n_groups, tl_engine_line_fn *fn, void *ctx) {
    regex_t re;
    regmatch_t m[GROUPS_MAX];
    char *g[GROUPS_MAX] = {0};
    if (!compile(&re, pattern)) return;
    tl_buf line;
    tl_buf_init(&line, 0);
    while (next_line(&line, &text)) {
        if (regexec(&re, line.p, GROUPS_MAX, m, 0) != 0) continue;
        take_groups(g, n_groups, line.p, m);
        fn(ctx, g, n_groups);
    }
    for (size_t i = 0; i < n_groups; i++) free(g[i]);
    tl_buf_free(&line);
    regfree(&re);
}

/* Fit for a one-line message: without the log's prefix, control bytes and what is not UTF-8; at most 300 bytes. */
static void clean_line(tl_buf *out, const json_t *adapter, const char *line) {
    regex_t re;
    regmatch_t m[1];
    const char *prefix = tl_json_str(adapter, "log_prefix", NULL);
    if (prefix && compile(&re, prefix)) {
        if (regexec(&re, line, 1, m, 0) == 0) line += m[0].rm_eo;
        regfree(&re);
    }
    while (*line == ' ' || *line == '\t') line++;
    size_t n = strlen(line);
    bool cut = n > 300;
    if (cut) n = 300;
    while (cut && n > 0 && ((unsigned char)line[n] & 0xC0u) == 0x80u) n--;
    bool utf8 = tl_utf8_valid(line, n);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)line[i];
        tl_buf_char(out, c < 0x20 || c == 0x7f ? ' ' : c >= 0x80 && !utf8 ? '?' : (char)c);
    }
    if (cut) tl_buf_str(out, "...");
}

/* The last whole line that matches. */
static bool last_match(tl_buf *out, const char *text, const char *pattern) {
    regex_t re;
    bool found = false;
    if (!compile(&re, pattern)) return false;
    tl_buf line;
    tl_buf_init(&line, 0);
    while (next_line(&line, &text)) {
        if (regexec(&re, line.p, 0, NULL, 0) != 0) continue;
        tl_buf_clear(out);
        tl_buf_add(out, line.p, line.len);
        found = true;
    }
    tl_buf_free(&line);
    regfree(&re);
    return found;
}

const json_t *tl_engine_failure(tl_buf *line_out, const json_t *adapter, const char *text) {
    const json_t *rules = json_object_get(adapter, "failures");
    const json_t *hit = NULL;
    tl_buf line;
    tl_buf_init(&line, 0);
    for (size_t i = 0; i < json_array_size(rules) && !hit; i++) {
        const json_t *rule = json_array_get(rules, i);
        const char *pattern = tl_json_str(rule, "pattern", NULL);
        if (pattern && last_match(&line, text, pattern)) hit = rule;
    }
    if (hit) clean_line(line_out, adapter, line.p);
    tl_buf_free(&line);
    return hit;
}

void tl_engine_last_line(tl_buf *out, const json_t *adapter, const char *text) {
    tl_buf line, kept;
    tl_buf_init(&line, 0);
    tl_buf_init(&kept, 0);
    while (next_line(&line, &text)) {
        if (line.p[strspn(line.p, " \t")] == '\0') continue;
        tl_buf_clear(&kept);
        tl_buf_add(&kept, line.p, line.len);
    }
    clean_line(out, adapter, kept.p);
    tl_buf_free(&line);
    tl_buf_free(&kept);
}
