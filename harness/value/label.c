/* The four labels and three languages. */
#include "value/value_impl.h"

static const char *const label_names[TL_LABELS] = {"official", "measured", "derived", "cited"};
static const char *const marks[TL_LABELS][TL_LANGS] = {
    {"【官方】", "【官方】", "[official]"},
    {"【實測】", "【实测】", "[measured]"},
    {"【推算】", "【推算】", "[derived]"},
    {"【引用】", "【引用】", "[cited]"},
};
static const char *const lang_names[TL_LANGS] = {"zh-Hant", "zh-Hans", "en"};

const char *tl_label_name(tl_label l) {
    return label_names[l];
}

const char *tl_label_mark(tl_label l, tl_lang lang) {
    return marks[l][lang];
}

const char *tl_lang_name(tl_lang lang) {
    return lang_names[lang];
}

static tl_status one_of(int *out, const char *what, const char *name, const char *const *names, size_t n,
                        tl_err *e) {
    for (size_t i = 0; i < n; i++)
        if (tl_str_eq(name, names[i])) return *out = (int)i, TL_OK;
    tl_fail(e, TL_INVALID, "'%.60s' is not a %s", name ? name : "", what);
    const char *near = name ? tl_nearest(name, names, n) : NULL;
    if (near != NULL) return tl_remedy(e, "did you mean '%s'?", near), TL_INVALID;
    tl_buf b;
    tl_buf_init(&b, 0);
    for (size_t i = 0; i < n; i++) tl_buf_fmt(&b, "%s%s", i ? ", " : "", names[i]);
    tl_remedy(e, "one of: %s", b.p);
    tl_buf_free(&b);
    return TL_INVALID;
}

tl_status tl_label_parse(tl_label *out, const char *name, tl_err *e) {
    int i = 0;
    tl_status st = one_of(&i, "label", name, label_names, TL_LABELS, e);
    *out = (tl_label)i;
    return st;
}

tl_status tl_lang_parse(tl_lang *out, const char *name, tl_err *e) {
    int i = 0;
    tl_status st = tl_str_eq(name, "zh") ? TL_OK : one_of(&i, "language", name, lang_names, TL_LANGS, e);
    *out = (tl_lang)i;
    return st;
}
