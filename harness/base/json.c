/* JSON on jansson: strict parsing, canonical text, dotted paths. jansson keeps 64-bit integers exact, which engines
 * that report nanoseconds need. */
#include "base/base.h"

#include <math.h>

tl_status tl_json_parse(json_t **out, const char *text, size_t len, const char *what, tl_err *e) {
    json_error_t je;
    *out = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
    if (*out == NULL) return tl_fail(e, TL_INVALID, "%s:%d:%d: not JSON: %s", what, je.line, je.column, je.text);
    return TL_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void write_string(tl_buf *b, const char *s) {
    json_t *j = json_string(s);
    char *t = json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT);
    tl_buf_str(b, t);
    free(t);
    json_decref(j);
}

static void write_object(tl_buf *b, const json_t *j);

static void canonical(tl_buf *b, const json_t *j) {
    char num[32];
    switch (json_typeof(j)) {
    case JSON_OBJECT: write_object(b, j); break;
    case JSON_ARRAY:
        tl_buf_char(b, '[');
        for (size_t i = 0; i < json_array_size(j); i++) {
            if (i) tl_buf_char(b, ',');
            canonical(b, json_array_get(j, i));
        }
        tl_buf_char(b, ']');
        break;
    case JSON_STRING: write_string(b, json_string_value(j)); break;
    case JSON_INTEGER: tl_buf_fmt(b, "%" PRId64, (int64_t)json_integer_value(j)); break;
    case JSON_REAL:
        tl_fmt_f64(num, json_real_value(j));
        tl_buf_str(b, num);
        /* an integral real keeps its type when it is read again */
        if (strspn(num, "-0123456789") == strlen(num)) tl_buf_str(b, ".0");
        break;
    case JSON_TRUE: tl_buf_str(b, "true"); break;
    case JSON_FALSE: tl_buf_str(b, "false"); break;
    case JSON_NULL: tl_buf_str(b, "null"); break;
    }
}

static void write_object(tl_buf *b, const json_t *j) {
    size_t n = json_object_size(j), i = 0;
    const char **keys = tl_xalloc(n * sizeof *keys);
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)j, key, v) keys[i++] = key;
    qsort(keys, n, sizeof *keys, by_name);
    tl_buf_char(b, '{');
    for (i = 0; i < n; i++) {
        if (i) tl_buf_char(b, ',');
        write_string(b, keys[i]);
        tl_buf_char(b, ':');
        canonical(b, json_object_get(j, keys[i]));
    }
    tl_buf_char(b, '}');
    free(keys);
}

char *tl_json_canonical(const json_t *j) {
    tl_buf b;
    tl_buf_init(&b, 0);
    canonical(&b, j);
    return b.p;
}

char *tl_json_pretty(const json_t *j) {
    char *text = json_dumps(j, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    char *copy = tl_xstrdup(text ? text : "null");
    free(text);
    return copy;
}

json_t *tl_json_at(const json_t *j, const char *path) {
    while (j != NULL && *path) {
        size_t n = strcspn(path, ".");
        char key[128];
        if (n >= sizeof key) return NULL;
        memcpy(key, path, n);
        key[n] = 0;
        int64_t index;
        if (json_is_array(j))
            j = tl_parse_i64(key, &index) && index >= 0 ? json_array_get(j, (size_t)index) : NULL;
        else
            j = json_object_get(j, key);
        path += n;
        if (*path == '.') path++;
    }
    return (json_t *)j;
}

const char *tl_json_str(const json_t *j, const char *path, const char *otherwise) {
    const char *s = json_string_value(tl_json_at(j, path));
    return s ? s : otherwise;
}

int64_t tl_json_int(const json_t *j, const char *path, int64_t otherwise) {
    const json_t *v = tl_json_at(j, path);
    if (json_is_integer(v)) return json_integer_value(v);
    if (json_is_real(v) && fabs(json_real_value(v)) < 9e18) return (int64_t)json_real_value(v);
    return otherwise;
}

double tl_json_num(const json_t *j, const char *path, double otherwise) {
    const json_t *v = tl_json_at(j, path);
    return json_is_number(v) ? json_number_value(v) : otherwise;
}

bool tl_json_bool(const json_t *j, const char *path, bool otherwise) {
    const json_t *v = tl_json_at(j, path);
    return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

json_t *tl_json_real(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}
