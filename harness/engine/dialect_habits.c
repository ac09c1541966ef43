/* How a stream is written, apart from what it says: the places where other clients are known to go wrong (published
 * bugs: a stripped read that merges records, `data:` without a space, `event:` lines, `usage: null`).
 */
#include "engine/dialect_impl.h"

static bool begins(const char *p, size_t n, const char *word) { return n >= strlen(word) && memcmp(p, word, strlen(word)) == 0; }

/* `"usage": null` with any space after the colon. */
static bool usage_null(const char *p, size_t n)
{
    static const char key[] = "\"usage\":";
    for (const char *end = p + n; (p = memmem(p, (size_t)(end - p), key, sizeof key - 1)) != NULL;) {
        p += sizeof key - 1;
        while (p < end && *p == ' ') p++;
        if (begins(p, (size_t)(end - p), "null")) return true;
    }
    return false;
}

static unsigned line_habits(const char *p, size_t n, bool data_before)
{
    if (n && p[0] == ':') return TL_HABIT_COMMENTS | (data_before ? 0 : TL_HABIT_COMMENTS_FIRST);
    if (begins(p, n, "event:")) return TL_HABIT_EVENT_LINES;
    if (!begins(p, n, "data:")) return 0;
    return (n > 5 && p[5] != ' ' ? TL_HABIT_NO_SPACE : 0) | (usage_null(p, n) ? TL_HABIT_USAGE_NULL : 0);
}

/* A boundary between two reads with a space next to it, both sides inside one line. */
static bool cut_at_space(const tl_http_log *log)
{
    for (size_t i = 1; i < log->n_reads; i++) {
        const uint64_t at = log->reads[i].offset;
        if (at == 0 || at >= log->body_len) continue;
        const char before = log->body[at - 1], after = log->body[at];
        if ((before == ' ' || after == ' ') && before != '\n' && after != '\n') return true;
    }
    return false;
}

unsigned tl_dialect_habits(const tl_http_log *log)
{
    bool data = false;
    unsigned habits = TL_HABIT_KNOWN | (cut_at_space(log) ? TL_HABIT_SPACE_CUT : 0);
    for (size_t at = 0; at < log->body_len;) {
        const char *line = log->body + at, *end = memchr(line, '\n', log->body_len - at);
        size_t n = end ? (size_t)(end - line) : log->body_len - at;
        at += n + 1;
        if (n && line[n - 1] == '\r') {
            habits |= TL_HABIT_CRLF;
            n--;
        }
        habits |= line_habits(line, n, data);
        data = data || begins(line, n, "data:");
    }
    return habits;
}
