/* Units as products of known atoms. The tables below are all there is to know about a unit; every rule works
 * on them. Information comes in three families that arithmetic does not mix: decimal bytes (GB), binary bytes
 * (GiB), bits. A plain "byte" belongs to both families of bytes. */
#include "value/value_impl.h"

#include <math.h>

enum { D_INFO, D_TOK, D_CHAR, D_REQ, D_TIME, D_FLOP, D_ENERGY, DIMS };
enum { P_NONE, P_N, P_U, P_M, P_K, P_MEGA, P_G, P_T, P_P, P_KI, P_MI, P_GI, P_TI, PREFIXES };
enum family { F_OTHER, F_BYTE, F_BIT };

#define DOWN (1u << P_N | 1u << P_U | 1u << P_M)
#define UP (1u << P_K | 1u << P_MEGA | 1u << P_G | 1u << P_T | 1u << P_P)
#define BINARY (1u << P_KI | 1u << P_MI | 1u << P_GI | 1u << P_TI)

static const struct prefix {
    const char *text;
    int ten, two; /* exponents */
} prefixes[PREFIXES] = {
    [P_NONE] = {"", 0, 0},  [P_N] = {"n", -9, 0},   [P_U] = {"u", -6, 0},   [P_M] = {"m", -3, 0},
    [P_K] = {"k", 3, 0},    [P_MEGA] = {"M", 6, 0}, [P_G] = {"G", 9, 0},    [P_T] = {"T", 12, 0},
    [P_P] = {"P", 15, 0},   [P_KI] = {"Ki", 0, 10}, [P_MI] = {"Mi", 0, 20}, [P_GI] = {"Gi", 0, 30},
    [P_TI] = {"Ti", 0, 40},
};

static const struct atom {
    const char *text;     /* printed */
    const char *prefixed; /* printed after a prefix; NULL = text */
    const char *also;     /* accepted too, separated by blanks */
    int8_t dim[DIMS];
    double mul, div;  /* to the base unit: bit, s, J, tok, ... */
    unsigned allowed; /* prefixes */
    bool scaled;      /* people change the prefix with the size of the number */
    enum family family;
} atoms[] = {
    {"byte", "B", "B bytes", {[D_INFO] = 1}, 8, 1, UP | BINARY, true, F_BYTE},
    {"bit", NULL, "bits", {[D_INFO] = 1}, 1, 1, UP, true, F_BIT},
    {"tok", NULL, "token tokens", {[D_TOK] = 1}, 1, 1, 1u << P_K | 1u << P_MEGA, false, F_OTHER},
    {"char", NULL, "chars", {[D_CHAR] = 1}, 1, 1, 0, false, F_OTHER},
    {"req", NULL, "request requests", {[D_REQ] = 1}, 1, 1, 0, false, F_OTHER},
    {"s", NULL, "sec", {[D_TIME] = 1}, 1, 1, DOWN, true, F_OTHER},
    {"min", NULL, "", {[D_TIME] = 1}, 60, 1, 0, false, F_OTHER},
    {"h", NULL, "hour", {[D_TIME] = 1}, 3600, 1, 0, false, F_OTHER},
    {"Hz", NULL, "", {[D_TIME] = -1}, 1, 1, UP, true, F_OTHER},
    {"FLOP", NULL, "", {[D_FLOP] = 1}, 1, 1, UP, true, F_OTHER},
    {"W", NULL, "", {[D_ENERGY] = 1, [D_TIME] = -1}, 1, 1, UP | DOWN, true, F_OTHER},
    {"J", NULL, "", {[D_ENERGY] = 1}, 1, 1, UP | DOWN, true, F_OTHER},
    {"Wh", NULL, "", {[D_ENERGY] = 1}, 3600, 1, UP, false, F_OTHER},
    {"%", NULL, "", {0}, 1, 100, 0, false, F_OTHER}, /* the last one */
};
enum { ATOMS = TL_COUNT(atoms) };

static const char *const names[ATOMS + 1] = {"byte", "bit",  "tok", "char", "req", "s", "min", "h",
                                             "Hz",   "FLOP", "W",   "J",    "Wh",  "%", "1"};

size_t tl_unit_names(const char *const **out) {
    *out = names;
    return TL_COUNT(names);
}

double tl_unit_apply(tl_unit_ratio r, double x) {
    return x * r.mul / r.div;
}

/* ---- ratios
 * ------------------------------------------------------------------------------------------------------ */

static double power_of(double base, int n) {
    double r = 1;
    for (; n > 0; n--) r *= base;
    return r;
}

static void ratio_times(tl_unit_ratio *r, double mul, double div, int exp) {
    if (exp < 0) ratio_times(r, div, mul, -exp);
    for (; exp > 0; exp--) {
        r->mul *= mul;
        r->div *= div;
    }
}

/* Common factors are taken out, so that GB to MB is 1000 and not 8e9 / 8e6. */
static void ratio_reduce(tl_unit_ratio *r) {
    double q = r->mul / r->div, w = r->div / r->mul;
    if (q >= 1 && q == floor(q))
        *r = (tl_unit_ratio){q, 1};
    else if (w >= 1 && w == floor(w))
        *r = (tl_unit_ratio){1, w};
}

static void ratio_factor(tl_unit_ratio *r, const tl_unit *u, size_t i, int sign) {
    const struct atom *a = &atoms[u->f[i].atom];
    const struct prefix *p = &prefixes[u->f[i].prefix];
    int exp = u->f[i].exp * sign;
    ratio_times(r, a->mul, a->div, exp);
    if (p->ten > 0) ratio_times(r, power_of(10, p->ten), 1, exp);
    if (p->ten < 0) ratio_times(r, 1, power_of(10, -p->ten), exp);
    ratio_times(r, power_of(2, p->two), 1, exp);
}

static void dimension(int out[DIMS], const tl_unit *u) {
    memset(out, 0, DIMS * sizeof *out);
    for (size_t i = 0; i < u->n; i++)
        for (size_t d = 0; d < DIMS; d++) out[d] += u->f[i].exp * atoms[u->f[i].atom].dim[d];
}

bool tl_unit_same_dimension(const tl_unit *a, const tl_unit *b) {
    int x[DIMS], y[DIMS];
    dimension(x, a);
    dimension(y, b);
    return memcmp(x, y, sizeof x) == 0;
}

bool tl_unit_equal(const tl_unit *a, const tl_unit *b) {
    char x[TL_UNIT_TEXT], y[TL_UNIT_TEXT];
    tl_unit_print(x, a);
    tl_unit_print(y, b);
    return strcmp(x, y) == 0;
}

tl_status tl_unit_convert(tl_unit_ratio *out, const tl_unit *from, const tl_unit *to, tl_err *e) {
    char x[TL_UNIT_TEXT], y[TL_UNIT_TEXT];
    *out = (tl_unit_ratio){1, 1};
    if (!tl_unit_same_dimension(from, to)) {
        tl_unit_print(x, from);
        tl_unit_print(y, to);
        tl_fail(e, TL_INVALID, "'%s' and '%s' measure different things", x, y);
        return tl_remedy(
                   e, "check the formula: only values of one dimension can be added, compared or converted"),
               TL_INVALID;
    }
    for (size_t i = 0; i < from->n; i++) ratio_factor(out, from, i, 1);
    for (size_t i = 0; i < to->n; i++) ratio_factor(out, to, i, -1);
    ratio_reduce(out);
    return TL_OK;
}

/* What the information in a unit is counted in. */
static void families(const tl_unit *u, bool *decimal, bool *binary, bool *bit) {
    for (size_t i = 0; i < u->n; i++) {
        const struct atom *a = &atoms[u->f[i].atom];
        unsigned p = 1u << u->f[i].prefix;
        if (a->family == F_BIT) *bit = true;
        if (a->family == F_BYTE && (p & BINARY)) *binary = true;
        if (a->family == F_BYTE && (p & UP)) *decimal = true;
    }
}

static bool has_byte(const tl_unit *u) {
    for (size_t i = 0; i < u->n; i++)
        if (atoms[u->f[i].atom].family == F_BYTE) return true;
    return false;
}

static tl_status no_mixing(const tl_unit *a, const tl_unit *b, tl_err *e) {
    bool decimal = false, binary = false, bit = false;
    char x[TL_UNIT_TEXT], y[TL_UNIT_TEXT];
    families(a, &decimal, &binary, &bit);
    families(b, &decimal, &binary, &bit);
    tl_unit_print(x, a);
    tl_unit_print(y, b);
    if (decimal && binary) {
        tl_fail(e, TL_INVALID, "'%s' and '%s' mix decimal and binary bytes: 1 GB is 0.931 GiB", x, y);
        return tl_remedy(e, "convert one of them explicitly"), TL_INVALID;
    }
    if (bit && (has_byte(a) || has_byte(b))) {
        tl_fail(e, TL_INVALID, "'%s' and '%s' mix bits and bytes", x, y);
        return tl_remedy(e, "convert one of them explicitly"), TL_INVALID;
    }
    return TL_OK;
}

tl_status tl_unit_match(tl_unit_ratio *out, const tl_unit *from, const tl_unit *to, tl_err *e) {
    tl_unit_ratio back; /* asked the other way round, so that a message names the left operand first */
    tl_status st = tl_unit_convert(&back, to, from, e);
    if (st != TL_OK) return st;
    *out = (tl_unit_ratio){back.div, back.mul};
    return no_mixing(to, from, e);
}

/* ---- products
 * ---------------------------------------------------------------------------------------------------- */

/* Multiplies u by one factor. A factor of the same dimension that is there already takes it up. */
static tl_status times(tl_unit *u, tl_unit_ratio *r, unsigned atom, unsigned prefix, int exp, tl_err *e) {
    tl_unit one = {.n = 1, .f = {{(uint8_t)atom, (uint8_t)prefix, 1}}};
    if (memcmp(atoms[atom].dim, (int8_t[DIMS]){0}, DIMS) == 0) { /* % : a plain number */
        ratio_factor(r, &one, 0, exp);
        return TL_OK;
    }
    for (size_t i = 0; i < u->n; i++) {
        if (memcmp(atoms[u->f[i].atom].dim, atoms[atom].dim, DIMS) != 0) continue;
        tl_unit own = {.n = 1, .f = {{u->f[i].atom, u->f[i].prefix, 1}}};
        tl_unit_ratio k = {1, 1};
        ratio_factor(&k, &one, 0, 1);
        ratio_factor(&k, &own, 0, -1);
        ratio_reduce(&k);
        ratio_times(r, k.mul, k.div, exp);
        int sum = u->f[i].exp + exp;
        if (sum > 9 || sum < -9)
            return tl_fail(e, TL_LIMIT, "the power of '%s' leaves -9 to 9", atoms[atom].text);
        u->f[i].exp = (int8_t)sum;
        if (sum == 0) {
            u->n--;
            memmove(&u->f[i], &u->f[i + 1], (u->n - i) * sizeof u->f[0]);
            memset(&u->f[u->n], 0, sizeof u->f[0]);
        }
        return TL_OK;
    }
    if (u->n == TL_UNIT_FACTORS)
        return tl_fail(e, TL_LIMIT, "a unit has more than %d factors", TL_UNIT_FACTORS);
    u->f[u->n].atom = (uint8_t)atom;
    u->f[u->n].prefix = (uint8_t)prefix;
    u->f[u->n].exp = (int8_t)exp;
    u->n++;
    return TL_OK;
}

static tl_status product(tl_unit *out, tl_unit_ratio *ratio, const tl_unit *a, const tl_unit *b, int sign,
                         tl_err *e) {
    *ratio = (tl_unit_ratio){1, 1};
    tl_unit u = {0};
    tl_status st = no_mixing(a, b, e);
    for (size_t i = 0; i < a->n && st == TL_OK; i++)
        st = times(&u, ratio, a->f[i].atom, a->f[i].prefix, a->f[i].exp, e);
    for (size_t i = 0; i < b->n && st == TL_OK; i++)
        st = times(&u, ratio, b->f[i].atom, b->f[i].prefix, b->f[i].exp * sign, e);
    ratio_reduce(ratio);
    *out = u;
    return st;
}

tl_status tl_unit_mul(tl_unit *out, tl_unit_ratio *ratio, const tl_unit *a, const tl_unit *b, tl_err *e) {
    return product(out, ratio, a, b, 1, e);
}

tl_status tl_unit_div(tl_unit *out, tl_unit_ratio *ratio, const tl_unit *a, const tl_unit *b, tl_err *e) {
    return product(out, ratio, a, b, -1, e);
}

tl_status tl_unit_pow(tl_unit *out, tl_unit_ratio *ratio, const tl_unit *a, int power, tl_err *e) {
    *ratio = (tl_unit_ratio){1, 1};
    tl_unit u = {0};
    tl_status st = TL_OK;
    if (power > 9 || power < -9) return tl_fail(e, TL_LIMIT, "power %d is outside -9 to 9", power);
    for (size_t i = 0; i < a->n && st == TL_OK && power != 0; i++)
        st = times(&u, ratio, a->f[i].atom, a->f[i].prefix, a->f[i].exp * power, e);
    for (size_t i = 0; i < u.n; i++)
        if (u.f[i].exp > 9 || u.f[i].exp < -9)
            return tl_fail(e, TL_LIMIT, "the power of a factor leaves -9 to 9");
    ratio_reduce(ratio);
    *out = u;
    return st;
}

/* The smallest number that is at least 1, else the largest below 1. */
static bool reads_better(double x, double than) {
    if (than == 0) return true;
    return x >= 1 ? than < 1 || x < than : than < 1 && x > than;
}

tl_unit tl_unit_display(const tl_unit *u, double number) {
    tl_unit best = *u;
    if (!isfinite(number) || number == 0 || u->n == 0) return best;
    const struct atom *a = &atoms[u->f[0].atom];
    if (u->f[0].exp != 1 || !a->scaled) return best;
    unsigned family = (1u << u->f[0].prefix) & BINARY ? BINARY : ~BINARY;
    double best_x = 0;
    for (unsigned p = 0; p < PREFIXES; p++) {
        if (p != P_NONE && !(a->allowed & family & (1u << p))) continue;
        tl_unit other = *u;
        other.f[0].prefix = (uint8_t)p;
        tl_unit_ratio r;
        if (tl_unit_convert(&r, u, &other, NULL) != TL_OK) continue;
        double x = fabs(tl_unit_apply(r, number));
        if (reads_better(x, best_x)) best = other, best_x = x;
    }
    return best;
}

/* ---- text
 * -------------------------------------------------------------------------------------------------------- */

static void print_factor(tl_buf *b, const tl_unit *u, size_t i, int exp) {
    const struct atom *a = &atoms[u->f[i].atom];
    const char *p = prefixes[u->f[i].prefix].text;
    tl_buf_fmt(b, "%s%s", p, *p && a->prefixed ? a->prefixed : a->text);
    if (exp != 1) tl_buf_fmt(b, "^%d", exp);
}

void tl_unit_print(char out[TL_UNIT_TEXT], const tl_unit *u) {
    tl_buf b;
    tl_buf_init(&b, TL_UNIT_TEXT - 1);
    size_t above = 0, below = 0, k = 0;
    for (size_t i = 0; i < u->n; i++) u->f[i].exp > 0 ? above++ : below++;
    for (size_t i = 0; i < u->n; i++) {
        if (u->f[i].exp <= 0) continue;
        if (k++) tl_buf_char(&b, '*');
        print_factor(&b, u, i, u->f[i].exp);
    }
    if (above == 0) tl_buf_char(&b, '1');
    if (below > 0) tl_buf_str(&b, below > 1 ? "/(" : "/");
    k = 0;
    for (size_t i = 0; i < u->n; i++) {
        if (u->f[i].exp >= 0) continue;
        if (k++) tl_buf_char(&b, '*');
        print_factor(&b, u, i, -u->f[i].exp);
    }
    if (below > 1) tl_buf_char(&b, ')');
    memcpy(out, b.p, b.len + 1);
    tl_buf_free(&b);
}

typedef struct reader {
    const char *text, *at;
    tl_unit *unit;
    tl_unit_ratio ratio;
    tl_err *e;
} reader;

static bool word_in(const char *list, const char *w, size_t n) {
    for (const char *p = list; *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        if (len == n && memcmp(p, w, n) == 0) return true;
        p += len;
    }
    return false;
}

static bool find_atom(unsigned *atom, unsigned *prefix, const char *w, size_t n) {
    for (unsigned a = 0; a < ATOMS; a++) {
        if (word_in(atoms[a].text, w, n) || word_in(atoms[a].also, w, n))
            return *atom = a, *prefix = P_NONE, true;
        const char *name = atoms[a].prefixed ? atoms[a].prefixed : atoms[a].text;
        size_t len = strlen(name);
        for (unsigned p = 1; p < PREFIXES; p++) {
            size_t k = strlen(prefixes[p].text);
            if (!(atoms[a].allowed & (1u << p)) || n != k + len) continue;
            if (memcmp(w, prefixes[p].text, k) == 0 && memcmp(w + k, name, len) == 0)
                return *atom = a, *prefix = p, true;
        }
    }
    return false;
}

static tl_status unknown(reader *r, const char *w, size_t n) {
    static const struct {
        const char *word, *say;
    } hints[] = {{"FLOPS", "write FLOP/s"},
                 {"TFLOPS", "write TFLOP/s"},
                 {"GFLOPS", "write GFLOP/s"},
                 {"tps", "write tok/s"},
                 {"Gbps", "write Gbit/s"},
                 {"Mbps", "write Mbit/s"},
                 {"GBps", "write GB/s"},
                 {"gb", "write GB (10^9 bytes) or GiB (2^30 bytes)"},
                 {"KB", "write kB (1000 bytes) or KiB (1024 bytes)"},
                 {"K", "write kB, KiB or ktok"},
                 {"x", "a ratio has the unit 1"}};
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), w);
    tl_fail(r->e, TL_INVALID, "unit '%.60s': '%s' is not a unit", r->text, word);
    for (size_t i = 0; i < TL_COUNT(hints); i++)
        if (strcmp(hints[i].word, word) == 0) return tl_remedy(r->e, "%s", hints[i].say), TL_INVALID;
    const char *near = tl_nearest(word, names, TL_COUNT(names));
    if (near != NULL) return tl_remedy(r->e, "did you mean '%s'?", near), TL_INVALID;
    return tl_remedy(r->e, "units are GB, GiB, byte, bit, tok, char, req, s, ms, FLOP, W, J, %%, 1 and "
                           "products such as GB/s"),
           TL_INVALID;
}

/* "^2", "^-1", or nothing. */
static tl_status read_power(reader *r, int *exp) {
    *exp = 1;
    if (*r->at != '^') return TL_OK;
    bool minus = r->at[1] == '-';
    const char *d = r->at + 1 + minus;
    if (*d < '1' || *d > '9')
        return tl_fail(r->e, TL_INVALID, "unit '%.60s': a power is a digit from 1 to 9", r->text);
    *exp = minus ? -(*d - '0') : *d - '0';
    r->at = d + 1;
    return TL_OK;
}

static tl_status read_percent(reader *r) {
    if (strcmp(r->text, "%") != 0) return tl_fail(r->e, TL_INVALID, "unit '%.60s': %% stands alone", r->text);
    r->unit->n = 1;
    r->unit->f[0].atom = ATOMS - 1;
    r->unit->f[0].exp = 1;
    return TL_OK;
}

static tl_status read_factor(reader *r, int sign) {
    size_t n = strcspn(r->at, "*/()^ ");
    const char *w = r->at;
    int exp;
    if (n == 0)
        return tl_fail(r->e, TL_INVALID, "unit '%.60s': a unit is missing at '%.20s'", r->text, r->at);
    r->at += n;
    tl_status st = read_power(r, &exp);
    if (st != TL_OK || (n == 1 && *w == '1')) return st;
    if (n == 1 && *w == '%') return read_percent(r);
    if (n == 3 &&
        (memcmp(w, "\xc2\xb5s", 3) == 0 || memcmp(w, "\xce\xbcs", 3) == 0)) { /* the two spellings of µs */
        w = "us";
        n = 2;
    }
    unsigned atom, prefix;
    if (!find_atom(&atom, &prefix, w, n)) return unknown(r, w, n);
    tl_unit_ratio before = r->ratio;
    st = times(r->unit, &r->ratio, atom, prefix, exp * sign, r->e);
    if (st == TL_OK && r->ratio.mul / r->ratio.div != before.mul / before.div)
        return tl_fail(r->e, TL_INVALID, "unit '%.60s' names one dimension in two sizes", r->text);
    return st;
}

static tl_status read_group(reader *r, int sign) {
    if (*r->at != '(') return read_factor(r, sign);
    do {
        r->at++;
        tl_status st = read_factor(r, sign);
        if (st != TL_OK) return st;
    } while (*r->at == '*');
    if (*r->at != ')') return tl_fail(r->e, TL_INVALID, "unit '%.60s': ')' is missing", r->text);
    r->at++;
    return TL_OK;
}

tl_status tl_unit_parse(tl_unit *out, const char *text, tl_err *e) {
    memset(out, 0, sizeof *out);
    if (text == NULL || *text == 0) {
        tl_fail(e, TL_INVALID, "a value needs a unit");
        return tl_remedy(e, "a plain ratio or count has the unit \"1\""), TL_INVALID;
    }
    reader r = {.text = text, .at = text, .unit = out, .ratio = {1, 1}, .e = e};
    tl_status st = read_group(&r, 1);
    while (st == TL_OK && (*r.at == '*' || *r.at == '/')) {
        int sign = *r.at++ == '*' ? 1 : -1;
        st = read_group(&r, sign);
    }
    if (st == TL_OK && *r.at != 0)
        st = tl_fail(e, TL_INVALID, "unit '%.60s': '%.20s' is left over", text, r.at);
    return st;
}
