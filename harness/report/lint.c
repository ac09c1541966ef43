/* The law of the house: a number with a performance unit, written by hand, carries its label and a footnote;
 * `measured` is never written by hand; footnotes are defined and used. Looked for in a normalised copy, so
 * that full-width digits, odd blanks, zero-width characters and emphasis marks hide nothing. */
#include "report/report_impl.h"

#include <strings.h>

/* Case counts for the short ones (s is not S, MB is not mb of nothing), not for the long ones. Longest first
 * where one begins another is not needed: the longest match is taken. */
static const char *const UNITS[] = {
    "tok/s",
    "tokens/s",
    "token/s",
    "tok/sec",
    "tokens/sec",
    "tokens per second",
    "tok per second",
    "t/s",
    "tps",
    "字/秒",
    "token/秒",
    "tokens/秒",
    "個 token/秒",
    "req/s",
    "requests/s",
    "rps",
    "qps",
    "B/s",
    "kB/s",
    "KB/s",
    "MB/s",
    "GB/s",
    "TB/s",
    "KiB/s",
    "MiB/s",
    "GiB/s",
    "TiB/s",
    "Gb/s",
    "Mb/s",
    "Gbps",
    "Mbps",
    "GT/s",
    "MT/s",
    "kB",
    "KB",
    "MB",
    "GB",
    "TB",
    "KiB",
    "MiB",
    "GiB",
    "TiB",
    "gb",
    "mb",
    "gib",
    "mib",
    "ns",
    "us",
    "ms",
    "s",
    "sec",
    "secs",
    "second",
    "seconds",
    "millisecond",
    "milliseconds",
    "microseconds",
    "ms/tok",
    "ms/token",
    "s/tok",
    "秒",
    "毫秒",
    "微秒",
    "奈秒",
    "纳秒",
    "W",
    "mW",
    "kW",
    "瓦",
    "瓦特",
    "J",
    "mJ",
    "kJ",
    "Wh",
    "kWh",
    "焦耳",
    "焦",
    "J/tok",
    "J/token",
    "%",
    "個百分點",
    "×",
    "x",
    "倍",
    "FLOPS",
    "FLOP/s",
    "MFLOPS",
    "GFLOPS",
    "TFLOPS",
    "PFLOPS",
    "GFLOP/s",
    "TFLOP/s",
    "PFLOP/s",
    "TOPS",
    "GOPS",
    "Hz",
    "MHz",
    "GHz",
    "B/token",
    "GB/token",
    "MB/token",
    "GB/tok",
    "MB/tok",
};

static bool word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

size_t rep_unit_at(const char *p, bool glued) {
    size_t best = 0;
    for (size_t i = 0; i < TL_COUNT(UNITS); i++) {
        const char *u = UNITS[i];
        size_t n = strlen(u);
        if (n <= best || (n >= 4 ? strncasecmp(p, u, n) : strncmp(p, u, n)) != 0) continue;
        if (word(u[n - 1]) && word(p[n])) continue;
        if (strcmp(u, "x") == 0 && !glued) continue;
        if (strcmp(u, "×") == 0 || strcmp(u, "x") == 0) { /* 720 × 400 is a size, not a ratio */
            const char *q = p + n + strspn(p + n, " ");
            if (*q >= '0' && *q <= '9') continue;
        }
        best = n;
    }
    return best;
}

bool rep_unit_is_performance(const char *unit) {
    return unit != NULL && *unit != 0 && rep_unit_at(unit, true) == strlen(unit);
}

/* What one byte position becomes. Returns the bytes taken; *c: one byte for it, 0 = nothing, 2 = copy as it
 * is. */
static size_t one(const char *p, size_t left, char *c) {
    static const struct {
        const char *from;
        char to;
    } map[] = {
        {"\xc2\xa0", ' '},
        {"\xe3\x80\x80", ' '},
        {"\xe2\x80\x89", ' '},
        {"\xe2\x80\xaf", ' '},
        {"\xe2\x80\x8b", 0},
        {"\xe2\x80\x8c", 0},
        {"\xe2\x80\x8d", 0},
        {"\xe2\x81\xa0", 0},
        {"\xef\xbb\xbf", 0},
        {"\xce\xbc", 'u'},
        {"\xc2\xb5", 'u'},
        {"&nbsp;", ' '},
        {"&#160;", ' '},
        {"&thinsp;", ' '},
        {"&ensp;", ' '},
        {"**", 0},
        {"*", 0},
        {"\\", 0},
    };
    const unsigned char *u = (const unsigned char *)p;
    for (size_t i = 0; i < TL_COUNT(map); i++) {
        size_t n = strlen(map[i].from);
        if (left >= n && memcmp(p, map[i].from, n) == 0) {
            *c = map[i].to;
            return n;
        }
    }
    if (left >= 3 && u[0] == 0xef && ((u[1] == 0xbc && u[2] >= 0x81) || (u[1] == 0xbd && u[2] <= 0x9e))) {
        *c = (char)(u[1] == 0xbc ? u[2] - 0x80 + 0x20
                                 : u[2] - 0x80 + 0x60); /* U+FF01..FF5E are ASCII + 0xFEE0 */
        return 3;
    }
    *c = 2;
    return 1;
}

void rep_norm_make(rep_norm *out, const char *p, const char *mask, size_t n, bool with_notes) {
    out->p = tl_xalloc(n + 1);
    out->off = tl_xalloc((n + 1) * sizeof *out->off);
    out->n = 0;
    for (size_t i = 0; i < n;) {
        char c, m = mask ? mask[i] : M_PROSE;
        size_t take = 1;
        if (m != M_PROSE && !(with_notes && m == M_NOTE))
            c = p[i] == '\n' ? '\n' : 1;
        else
            take = one(p + i, n - i, &c);
        if (c == 2) c = p[i];
        if (c == '\n' && i + 1 < n && p[i + 1] != '\n' && i > 0 && p[i - 1] != '\n' && p[i + 1] != '|')
            c = ' ';
        if (c != 0) {
            out->off[out->n] = i;
            out->p[out->n++] = c;
        }
        i += take;
    }
    out->off[out->n] = n;
}

void rep_norm_free(rep_norm *n) {
    free(n->p);
    free(n->off);
}

/* Over a number at p; 0 when there is none. */
static size_t number_at(const char *p) {
    size_t i = 0;
    if (p[i] < '0' || p[i] > '9') return 0;
    while ((p[i] >= '0' && p[i] <= '9') || (strchr(".,", p[i]) && p[i] && p[i + 1] >= '0' && p[i + 1] <= '9'))
        i++;
    if ((p[i] == 'e' || p[i] == 'E') &&
        ((p[i + 1] >= '0' && p[i + 1] <= '9') ||
         (strchr("+-", p[i + 1]) && p[i + 1] && p[i + 2] >= '0' && p[i + 2] <= '9'))) {
        i += 2;
        while (p[i] >= '0' && p[i] <= '9') i++;
    }
    return i;
}

/* The same with the intervals behind it: 455 ± 20. */
static size_t interval_at(const char *p) {
    size_t n = number_at(p);
    while (n > 0) {
        size_t k = n + strspn(p + n, " ");
        if (!tl_str_starts(p + k, "±") && !tl_str_starts(p + k, "+-")) break;
        k += 2;
        k += strspn(p + k, " ");
        size_t more = number_at(p + k);
        if (more == 0) break;
        n = k + more;
    }
    return n;
}

/* 95% interval, 95 % 信賴區間: says how sure, not how fast. */
static bool confidence(const char *p) {
    static const char *const words[] = {"interval", "confidence", "CI",   "prediction", "區間",   "区间",
                                        "信賴",     "信赖",       "置信", "信心",       "的區間", "的区间"};
    p += strspn(p, " ");
    for (size_t i = 0; i < TL_COUNT(words); i++) {
        if (tl_str_starts(p, words[i])) return true;
    }
    return false;
}

static bool decade(const char *p, size_t n, size_t gap, const char *unit) {
    return gap == 0 && n == 4 && strncmp(unit, "s", 1) == 0 && !word(unit[1]) && (*p == '1' || *p == '2');
}

static void footnote_says_where(rep *r, const char *name, size_t n, rep_label l, size_t from) {
    char *open = tl_xprintf("[^%.*s]:", (int)n, name);
    const char *p = r->text.len ? strstr(r->text.p + r->body, open) : NULL;
    const char *end = p ? strstr(p, "\n\n") : NULL;
    const char *url = p ? strstr(p, "http") : NULL;
    if (p != NULL && (l == REP_OFFICIAL || l == REP_CITED) && (url == NULL || (end != NULL && url > end))) {
        rep_problem_add(r, from, "put the URL, the title and the date of retrieval into the footnote",
                        "%s number: its footnote [^%.*s] has no URL", rep_label_names[l], (int)n, name);
    }
    free(open);
}

static void naked(rep *r, const rep_norm *t, size_t at, size_t n, size_t fixed, const char *what) {
    size_t from = fixed != SIZE_MAX ? fixed : t->off[at];
    rep_problem_add(r, from,
                    "take it from a run or a formula with `= ...`, or write its label and a footnote behind "
                    "it: 504 GB/s【推算】[^name]"
                    " ([official], [derived] or [cited])",
                    "the number '%.*s' has a unit, but no label and source%s%s%s", (int)(n > 60 ? 60 : n),
                    t->p + at, what ? " (" : "", what ? what : "", what ? ")" : "");
}

static void check_numbers(rep *r, const rep_norm *t, size_t fixed, const char *what) {
    for (size_t i = 0; i < t->n;) {
        size_t n = interval_at(t->p + i);
        if (n == 0) {
            i++;
            continue;
        }
        bool inside = i > 0 && (word(t->p[i - 1]) || (t->p[i - 1] == '.' && i > 1 && word(t->p[i - 2])));
        size_t gap = strspn(t->p + i + n, " "), unit = inside ? 0 : rep_unit_at(t->p + i + n + gap, gap == 0);
        const char *u = t->p + i + n + gap;
        if (unit == 0 || decade(t->p + i, n, gap, u) || (*u == '%' && confidence(u + unit))) {
            i += n;
            continue;
        }
        const char *p = u + unit;
        p += strspn(p, " ");
        size_t len = 0, all = (size_t)(u + unit - (t->p + i));
        rep_label l = rep_label_at(p, &len);
        const char *q = p + len;
        q += strspn(q, " ");
        size_t name = q[0] == '[' && q[1] == '^' ? strcspn(q + 2, "]\n") : 0;
        if (l == REP_NONE || l == REP_MEASURED || name == 0) {
            if (l != REP_MEASURED)
                naked(r, t, i, all, fixed, what); /* measured: reported by check_measured */
        } else {
            footnote_says_where(r, q + 2, name, l, fixed != SIZE_MAX ? fixed : t->off[i]);
        }
        i += all;
    }
}

static void check_measured(rep *r, const char *text, const char *mask, size_t n, size_t fixed) {
    rep_norm t;
    rep_norm_make(&t, text, mask, n, true);
    for (size_t i = 0; i < t.n; i++) {
        size_t len;
        if ((t.p[i] != '[' && (unsigned char)t.p[i] != 0xe3) || rep_label_at(t.p + i, &len) != REP_MEASURED)
            continue;
        rep_problem_add(r, fixed != SIZE_MAX ? fixed : t.off[i],
                        "name the value: `= EXPERIMENT@MACHINE.metric{...}`",
                        "'%.*s' is written by hand; only a run can say so", (int)len, t.p + i);
    }
    rep_norm_free(&t);
}

typedef struct note {
    char *name;
    size_t at;
    bool defined, used;
} note;

static note *note_of(note **list, size_t *n, size_t *cap, const char *name, size_t len, size_t at) {
    for (size_t i = 0; i < *n; i++) {
        if (strlen((*list)[i].name) == len && memcmp((*list)[i].name, name, len) == 0) return &(*list)[i];
    }
    note x = {.name = tl_xstrndup(name, len), .at = at};
    TL_PUSH(*list, *n, *cap, x);
    return &(*list)[*n - 1];
}

static void check_footnotes(rep *r) {
    const char *s = r->text.p;
    note *list = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = r->body; i + 2 < r->text.len; i++) {
        if (s[i] != '[' || s[i + 1] != '^' || (r->mask[i] != M_PROSE && r->mask[i] != M_NOTE) ||
            (i > 0 && s[i - 1] == '\\'))
            continue;
        size_t len = strcspn(s + i + 2, "]\n \t");
        if (len == 0 || s[i + 2 + len] != ']') continue;
        if (n == REP_NOTES_MAX) {
            rep_problem_add(r, i, "split the report", "more than %d footnotes", REP_NOTES_MAX);
            break;
        }
        size_t back = i; /* a definition: at most three blanks before it on its line */
        while (back > 0 && i - back < 3 && s[back - 1] == ' ') back--;
        bool def = s[i + 3 + len] == ':' && (back == 0 || s[back - 1] == '\n');
        note *x = note_of(&list, &n, &cap, s + i + 2, len, i);
        if (def && x->defined)
            rep_problem_add(r, i, "keep one of the two", "footnote [^%s] is defined twice", x->name);
        if (def)
            x->defined = true, x->at = i;
        else
            x->used = true;
    }
    for (size_t i = 0; i < n; i++) {
        if (!list[i].defined)
            rep_problem_add(r, list[i].at, "add a line [^name]: source, or take the mark out",
                            "footnote [^%s] is not defined", list[i].name);
        else if (!list[i].used)
            rep_problem_add(r, list[i].at, "refer to it, or delete it", "footnote [^%s] is never used",
                            list[i].name);
        if (tl_str_starts(list[i].name, "tally-"))
            rep_problem_add(r, list[i].at, "choose another name",
                            "footnote names 'tally-...' are taken by the report itself");
        free(list[i].name);
    }
    free(list);
}

void rep_lint_text(rep *r, const char *text, size_t from, const char *what) {
    rep_norm t;
    rep_norm_make(&t, text, NULL, strlen(text), false);
    check_numbers(r, &t, from, what);
    rep_norm_free(&t);
    check_measured(r, text, NULL, strlen(text), from);
}

void rep_lint(rep *r) {
    rep_norm t;
    rep_norm_make(&t, r->text.p, r->mask, r->text.len, false);
    check_numbers(r, &t, SIZE_MAX, NULL);
    rep_norm_free(&t);
    check_measured(r, r->text.p, r->mask, r->text.len, SIZE_MAX);
    check_footnotes(r);
}
