/* One line a message on standard error, written with a single call so that threads do not mix lines. */
#include "base/base.h"

#include <unistd.h>

tl_level tl_log_level = TL_LOG_INFO;

bool tl_color(FILE *f) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    if (no != NULL && no[0] != 0) return false;
    if (term == NULL || tl_str_eq(term, "dumb")) return false;
    return isatty(fileno(f)) == 1;
}

void tl_log(tl_level level, const char *fmt, ...) {
    if (level > tl_log_level || level == TL_LOG_QUIET) return;
    static const char *const names[] = {"", "error: ", "warning: ", "", "debug: "};
    static const char *const colors[] = {"", "\033[31m", "\033[33m", "", "\033[2m"};
    bool color = tl_color(stderr);
    char line[2048];
    int n = snprintf(line, sizeof line, "%stally: %s", color ? colors[level] : "", names[level]);
    va_list ap;
    va_start(ap, fmt);
    n += vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
    va_end(ap);
    if (n > (int)sizeof line - 8) n = (int)sizeof line - 8;
    n += snprintf(line + n, sizeof line - (size_t)n, "%s\n", color && colors[level][0] ? "\033[0m" : "");
    fwrite(line, 1, (size_t)n, stderr);
}
