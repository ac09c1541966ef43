/* An SLO as people write it, "ttft<2s@95%", and the judgement of one request against one of its terms.
 *
 * A scanner of one pass without backtracking. Powers of ten are put into the number's text ("99.9e-2") and not
 * multiplied in, so that 99.9 % is the double nearest to 0.999 and the canonical text reads back to the same bits.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "sample/sample_impl.h"

#define LIMIT_MIN_MS 0.001
#define LIMIT_MAX_MS 86400e3
#define SHARE_MIN 0.01
#define NUMBER_MAX 15 /* characters: more than a double tells apart */

static const char *const metrics[] = { "ttft", "tpot", "e2e" };

typedef struct scanner {
    const char *text, *p;
    tl_err *e;
} scanner;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/* At most `max` bytes of the input as one line that is safe to print. */
static void shown(char *out, const char *s, size_t max)
{
    size_t i = 0;
    for (; i < max && s[i]; i++) out[i] = (char)(s[i] >= ' ' && s[i] <= '~' ? s[i] : '?');
    memcpy(out + i, s[i] ? "..." : "", s[i] ? 4 : 1);
}

static tl_status refuse(const scanner *s, const char *at, const char *what, const char *remedy)
{
    char all[84], there[24];
    shown(all, s->text, sizeof all - 4);
    shown(there, at, sizeof there - 4);
    (void)tl_fail(s->e, TL_INVALID, "slo \"%s\", position %zu, at \"%s\": %s", all, (size_t)(at - s->text) + 1, there, what);
    (void)tl_remedy(s->e, "%s", remedy);
    return TL_INVALID;
}

static void blanks(scanner *s) { s->p += strspn(s->p, " \t"); }

static bool take(scanner *s, const char *word)
{
    if (!tl_str_starts(s->p, word)) return false;
    s->p += strlen(word);
    blanks(s);
    return true;
}

/* Letters and digits that are one whole word of `words`; its index, or -1 with nothing taken. */
static int take_word(scanner *s, const char *const *words, size_t n)
{
    size_t len = 0;
    while (is_word(s->p[len])) len++;
    for (size_t i = 0; i < n; i++)
        if (len == strlen(words[i]) && memcmp(s->p, words[i], len) == 0) {
            s->p += len;
            blanks(s);
            return (int)i;
        }
    return -1;
}

/* Digits with at most one point between or before them. */
static tl_status number(scanner *s, char out[NUMBER_MAX + 1], const char *remedy)
{
    const char *at = s->p;
    size_t digits = 0, points = 0;
    for (; is_digit(*s->p) || *s->p == '.'; s->p++) *s->p == '.' ? points++ : digits++;
    if (digits == 0 || points > 1 || s->p[-1] == '.') return refuse(s, at, "a plain decimal number belongs here", remedy);
    if (s->p - at > NUMBER_MAX) return refuse(s, at, "the number has over 15 characters", remedy);
    memcpy(out, at, (size_t)(s->p - at));
    out[s->p - at] = 0;
    blanks(s);
    return TL_OK;
}

static double scaled(const char *digits, int exponent)
{
    char text[NUMBER_MAX + 8];
    double x = NAN;
    snprintf(text, sizeof text, "%se%d", digits, exponent);
    return tl_parse_f64(text, &x) ? x : NAN;
}

static tl_status limit(scanner *s, double *out_ms)
{
    static const char *const units[] = { "ms", "s" };
    static const char remedy[] = "write the limit as 80ms or 2s, between 0.001ms and 86400s";
    char digits[NUMBER_MAX + 1];
    const char *at = s->p;
    tl_status st = TL_OK;
    TRY(number(s, digits, remedy));
    const int unit = take_word(s, units, TL_COUNT(units));
    if (unit < 0) return refuse(s, s->p, "the limit needs its unit, ms or s", remedy);
    *out_ms = scaled(digits, unit == 0 ? 0 : 3);
    if (!(*out_ms >= LIMIT_MIN_MS && *out_ms <= LIMIT_MAX_MS)) return refuse(s, at, "the limit is out of range", remedy);
out:
    return st;
}

static tl_status share(scanner *s, double *out)
{
    static const char remedy[] = "end the term with the share of requests that must keep it, as @95% or @0.95; at least "
                                 "1%, and below 100%, which no number of requests can show";
    char digits[NUMBER_MAX + 1];
    tl_status st = TL_OK;
    if (!take(s, "@")) return refuse(s, s->p, "the term has no share", remedy);
    const char *at = s->p;
    TRY(number(s, digits, remedy));
    *out = scaled(digits, take(s, "%") ? -2 : 0);
    if (!(*out >= SHARE_MIN && *out < 1)) return refuse(s, at, "the share is out of range", remedy);
out:
    return st;
}

static tl_status term(scanner *s, tl_slo_term *t)
{
    tl_status st = TL_OK;
    const int m = take_word(s, metrics, TL_COUNT(metrics));
    if (m < 0) return refuse(s, s->p, "a promise is about ttft, tpot or e2e", "write it as ttft<2s@95%");
    t->metric = metrics[m];
    if (!take(s, "<=") && !take(s, "<"))
        return refuse(s, s->p, "'<' belongs here: a promise is an upper limit", "write it as ttft<2s@95%");
    TRY(limit(s, &t->limit_ms));
    TRY(share(s, &t->share));
out:
    return st;
}

static bool is_twice(const tl_slo_spec *spec, const tl_slo_term *t)
{
    for (size_t i = 0; i < spec->n; i++)
        if (spec->v[i].metric == t->metric && spec->v[i].share == t->share) return true;
    return false;
}

static tl_status terms(tl_slo_spec *out, scanner *s)
{
    tl_status st = TL_OK;
    blanks(s);
    do {
        const char *at = s->p;
        tl_slo_term t = { 0 };
        TRY(term(s, &t));
        if (is_twice(out, &t))
            return refuse(s, at, "the same metric and share stand twice", "keep the limit that is meant");
        if (out->n == TL_SLO_TERMS) return refuse(s, at, "over 8 terms", "promise less");
        out->v[out->n++] = t;
    } while (take(s, ","));
    if (*s->p) return refuse(s, s->p, "the text should end here, or go on with a comma", "write it as ttft<2s@95%, tpot<80ms@95%");
out:
    return st;
}

tl_status tl_slo_parse(tl_slo_spec *out, const char *text, tl_err *e)
{
    scanner s = { .text = text ? text : "", .e = e };
    s.p = s.text;
    *out = (tl_slo_spec){ 0 };
    const tl_status st = terms(out, &s);
    if (st != TL_OK) *out = (tl_slo_spec){ 0 };
    return st;
}

/* The shortest decimal of x/10^exponent that scaled() turns into x. */
static void unscaled(char out[32], double x, int exponent)
{
    double back = NAN;
    for (int digits = 1; digits <= 17; digits++) {
        char text[40];
        snprintf(out, 32, "%.*g", digits, exponent == 3 ? x / 1e3 : exponent == -2 ? x * 100 : x);
        snprintf(text, sizeof text, "%se%d", out, exponent);
        if (!strchr(out, 'e') && tl_parse_f64(text, &back) && back == x) return;
    }
}

char *tl_slo_text(const tl_slo_spec *s)
{
    tl_buf b;
    tl_buf_init(&b, 0);
    for (size_t i = 0; i < s->n; i++) {
        const tl_slo_term *t = &s->v[i];
        const bool seconds = t->limit_ms >= 1000;
        char lim[32], pct[32];
        unscaled(lim, t->limit_ms, seconds ? 3 : 0);
        unscaled(pct, t->share, -2);
        tl_buf_fmt(&b, "%s%s<%s%s@%s%%", i ? ", " : "", t->metric, lim, seconds ? "s" : "ms", pct);
    }
    return tl_buf_take(&b);
}

bool tl_slo_meets(const tl_slo_term *t, const tl_metrics *m)
{
    if (m->outcome != TL_REQ_OK || m->ttft_ns == TL_NONE) return false;
    const double ms = tl_metric_get(m, t->metric);
    return isnan(ms) || ms <= t->limit_ms;
}
