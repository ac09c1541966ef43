/* Ollama's --verbose: eight lines of text behind each answer. Lines whose number is 0 are not printed, so a row has what it
 * has; the last of them, "eval rate", closes it. */
#include "import/import_impl.h"

#include <ctype.h>

#define TIME(n) {.name = (n), .role = IMP_FIGURE, .unit = "s"}
const imp_field imp_ollama[] = {
    TIME("total duration"),
    TIME("load duration"),
    TOTAL("prompt eval count", "tok"),
    TIME("prompt eval duration"),
    TOTAL("prompt eval rate", "tok/s"),
    TOTAL("eval count", "tok"),
    TIME("eval duration"),
    TOTAL("eval rate", "tok/s"),
    {0}};

/* Go's way to write a duration, "1m2.5s": in seconds. The power of ten is read with the digits, so that 850.2ms is 0.8502 and
 * not its neighbour. False: something else. */
static bool read_duration(double *out, const char *s) {
    static const struct {
        const char *word, *power;
        double times;
    } units[] = {{"h", "", 3600}, {"ms", "e-3", 1}, {"m", "", 60}, {"s", "", 1}, {"\u00b5s", "e-6", 1}, {"\u03bcs", "e-6", 1}, {"us", "e-6", 1}, {"ns", "e-9", 1}};
    *out = 0;
    if (*s == 0) return false;
    while (*s) {
        char digits[40];
        double x;
        size_t n = strspn(s, "0123456789."), k = 0;
        if (n == 0 || n > 32) return false;
        while (k < TL_COUNT(units) && !tl_str_starts(s + n, units[k].word)) k++;
        if (k == TL_COUNT(units)) return false;
        snprintf(digits, sizeof digits, "%.*s%s", (int)n, s, units[k].power);
        if (!tl_parse_f64(digits, &x)) return false;
        *out += x * units[k].times;
        s += n + strlen(units[k].word);
    }
    return true;
}

/* The number behind a name, without its word. NULL: not of this form, so the line is none of the eight. */
static json_t *read_value(const imp_field *f, const char *text) {
    static const char *const words[] = {" token(s)", " tokens/s"};
    double x;
    if (tl_str_eq(f->unit, "s")) return read_duration(&x, text) ? json_real(x) : NULL;
    const char *word = words[tl_str_eq(f->unit, "tok/s")];
    if (!tl_str_ends(text, word)) return NULL;
    return json_stringn(text, strlen(text) - strlen(word));
}

typedef struct block {
    json_t *fields; /* of the answer being read; NULL: between two */
    int64_t line;
    size_t strange;
} block;

static void close_block(imp_text *t, block *b) {
    if (b->fields) imp_add(t, b->line, b->fields, NULL);
    b->fields = NULL;
}

/* Is this one of the eight? A name that stands in the block already begins the next one. */
static bool take_line(imp_text *t, block *b, const char *text, int64_t line) {
    const imp_field *f = imp_ollama;
    const char *colon = strchr(text, ':');
    if (colon == NULL) return false;
    while (f->name && !(strlen(f->name) == (size_t)(colon - text) && tl_str_starts(text, f->name))) f++;
    json_t *v = f->name ? read_value(f, colon + 1 + strspn(colon + 1, " ")) : NULL;
    if (v == NULL) return false;
    if (b->fields && (json_object_get(b->fields, f->name) || f == imp_ollama)) close_block(t, b);
    if (b->fields == NULL) {
        b->fields = json_object();
        b->line = line;
    }
    json_object_set_new(b->fields, f->name, v);
    if (tl_str_eq(f->name, "eval rate")) close_block(t, b);
    return true;
}

bool imp_cut_ollama(imp_text *t) {
    block b = {0};
    int64_t line = 0;
    t->form = "text";
    for (size_t at = 0; at < t->len; line++) {
        const char *nl = memchr(t->p + at, '\n', t->len - at);
        size_t n = nl ? (size_t)(nl - (t->p + at)) : t->len - at;
        char *text = tl_xstrndup(t->p + at, n);
        for (size_t k = strlen(text); k > 0 && isspace((unsigned char)text[k - 1]); k--) text[k - 1] = 0;
        if (!take_line(t, &b, text, line + 1)) b.strange += *text != 0;
        free(text);
        at += n + 1;
    }
    if (b.fields) { /* no "eval rate" any more: it cannot be told from a cut */
        t->lost = tl_xprintf("the statistics that begin in line %" PRId64, b.line);
        json_decref(b.fields);
    }
    if (t->n > 0 && b.strange > 0) {
        char *text = tl_xprintf("%zu lines of other text in the file: prompts and answers", b.strange);
        imp_other(t, 1, text, strlen(text));
        free(text);
    }
    return t->n > 0 || t->lost;
}
