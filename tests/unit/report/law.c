#include "law.h"

static const double BYTES[] = {0.0455, 0.1834, 0.8677, 2.1794}, RATE[] = {455, 149, 34.1, 15.46},
                    HALF[] = {20, 2, 1.0, 0.19};
static const char *const NAMES[] = {"c50", "c200", "c800", "c2200"};

static bool zh(const law *l) {
    return l->lang[0] == 'z';
}

static json_t *measured(const char *name, double v, double half, const char *unit) {
    return json_pack("{s:s, s:f, s:f, s:f, s:s, s:s, s:{s:s, s:s, s:s}}", "name", name, "value", v, "lo",
                     v - half, "hi", v + half, "unit", unit, "label", "measured", "source", "run",
                     "01JE5K3QZ8M4T7QX2V9N6B7Q3", "machine", "this", "revision", "ab12cd3 (clean)");
}

static json_t *decode_rate(const law *l, size_t i) {
    json_t *bytes = json_pack(
        "{s:s, s:f, s:s, s:s, s:{s:s, s:s, s:s}}", "name", "bytes", "value", BYTES[i], "unit", "GB", "label",
        "official", "source", "title", zh(l) ? "檔頭逐張量相加" : "sum over the file's tensors", "url",
        "https://github.com/ggml-org/ggml/blob/master/docs/gguf.md", "retrieved", "2026-01-31");
    json_t *inputs = json_pack("[o, o, o]", bytes, measured("bandwidth", 34.2, 0.8, "GB/s"),
                               measured("overhead", 1.8, 0.1, "ms"));
    return json_pack("{s:s, s:f, s:f, s:f, s:s, s:s, s:s, s:o}", "name", "decode_rate", "value",
                     1 / (0.0018 + BYTES[i] / 34.2), "lo", 0.93 / (0.0018 + BYTES[i] / 34.2), "hi",
                     1.07 / (0.0018 + BYTES[i] / 34.2), "unit", "tok/s", "label", "derived", "formula",
                     "1 / (overhead + bytes / bandwidth)", "inputs", inputs);
}

tl_status law_value(json_t **out, void *ctx, const char *expr, const tl_report_pos *pos, tl_err *e) {
    law *l = ctx;
    l->values++;
    if (l->replace) {
        *out = json_incref(l->replace);
        return TL_OK;
    }
    for (size_t i = 0; i < TL_COUNT(NAMES); i++) {
        char key[64];
        snprintf(key, sizeof key, "rate{model=%s}", NAMES[i]);
        if (strcmp(expr, key) == 0) {
            *out = measured("rate", RATE[i], HALF[i], "tok/s");
            return TL_OK;
        }
    }
    if (strcmp(expr, "law.slope") == 0) {
        *out = json_pack("{s:s, s:f, s:s, s:s, s:s, s:[o]}", "name", "slope", "value", 33.7, "unit", "GB/s",
                         "label", "derived", "formula", "median(rate * bytes)", "inputs",
                         measured("rate", 15.46, 0.19, "tok/s"));
        return TL_OK;
    }
    if (strcmp(expr, "probe.read") == 0) {
        *out = measured("read", 37.4, 0.9, "GB/s");
        return TL_OK;
    }
    tl_fail(e, TL_NOT_FOUND, "no value '%s' (asked at line %d)", expr, pos->line);
    return tl_remedy(e, "did you mean 'law.slope'?");
}

static json_t *figure(const law *l) {
    json_t *points = json_array(), *line = json_array();
    for (size_t i = 0; i < 4; i++) {
        json_array_append_new(points,
                              json_pack("{s:f, s:f, s:f, s:f, s:s}", "x", BYTES[i], "y", RATE[i], "ylo",
                                        RATE[i] - HALF[i], "yhi", RATE[i] + HALF[i], "text", NAMES[i]));
    }
    for (double x = 0.04; x < 2.6; x *= 1.15) {
        double t = 0.0018 + x / 34.2;
        json_array_append_new(
            line, json_pack("{s:f, s:f, s:f, s:f}", "x", x, "y", 1 / t, "ylo", 0.93 / t, "yhi", 1.07 / t));
    }
    json_t *spec = json_pack(
        "{s:s, s:s, s:s, s:{s:s, s:s, s:b}, s:{s:s, s:s, s:b}, s:[{s:s, s:s, s:s, s:o}, {s:s, s:s, s:s, "
        "s:o}]}",
        "type", "scatter", "title",
        zh(l) ? "生成速度與每個 token 讀取的位元組" : "Decode rate against bytes read per token", "alt",
        zh(l) ? "四個模型的生成速度隨讀取的位元組下降，點落在推算的帶上。"
              : "The decode rate of four models falls with the bytes read; the points lie on the predicted "
                "band.",
        "x", "label", zh(l) ? "每個 token 讀取的位元組" : "bytes read per token", "unit", "GB", "log", 1, "y",
        "label", zh(l) ? "生成速度" : "decode rate", "unit", "tok/s", "log", 1, "series", "name",
        zh(l) ? "推算：1.8 ms + 位元組 ÷ 34.2 GB/s" : "derived: 1.8 ms + bytes ÷ 34.2 GB/s", "label",
        "derived", "kind", "line", "points", line, "name",
        zh(l) ? "實測（95% 區間）" : "measured (95% interval)", "label", "measured", "kind", "points",
        "points", points);
    return json_pack("{s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s}}", "figure", spec, "label", "measured",
                     "run", "01JE5K3QZ8M4T7QX2V9N6B7Q3", "revision", "ab12cd3 (clean)", "machine",
                     zh(l) ? "this（2 核）" : "this (2 cores)", "engine", "llama.cpp b11669", "stale",
                     l->stale ? l->stale : "", "manifest", "experiment", "bandwidth-law", "script",
                     "return '</script><script>alert(1)</script> & more'");
}

static json_t *table(const law *l) {
    json_t *rows = json_array();
    for (size_t i = 0; i < 4; i++) {
        json_array_append_new(rows, json_pack("[s, f, o, o, f]", NAMES[i], BYTES[i],
                                              measured("rate", RATE[i], HALF[i], "tok/s"), decode_rate(l, i),
                                              RATE[i] * (0.0018 + BYTES[i] / 34.2)));
    }
    return json_pack("{s:[{s:s,s:s},{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s}],"
                     " s:o, s:s*, s:s, s:s, s:s}",
                     "columns", "key", "model", "title", zh(l) ? "模型" : "model", "key", "bytes", "title",
                     zh(l) ? "每 token 讀取" : "read per token", "unit", "GB", "label", "official", "key",
                     "rate", "title", zh(l) ? "速度" : "speed", "unit", "tok/s", "label", "measured", "key",
                     "predicted", "title", zh(l) ? "推算" : "predicted", "unit", "tok/s", "label", "derived",
                     "key", "ratio", "title", zh(l) ? "比值" : "ratio", "unit", "", "label", "derived",
                     "rows", rows, "caption", l->caption, "run", "01JE5K3QZ8M4T7QX2V9N6B7Q3", "machine",
                     "this", "label", "measured");
}

tl_status law_block(json_t **out, void *ctx, const char *kind, const json_t *attrs, const char *text,
                    const tl_report_pos *pos, tl_err *e) {
    law *l = ctx;
    TL_UNUSED(attrs), TL_UNUSED(text), TL_UNUSED(pos);
    l->blocks++;
    if (strcmp(kind, "figure") == 0)
        *out = figure(l);
    else if (strcmp(kind, "table") == 0)
        *out = table(l);
    else if (strcmp(kind, "formula") == 0)
        *out = json_pack("{s:s, s:o}", "title", zh(l) ? "c2200 應該多快" : "how fast c2200 should be",
                         "value", decode_rate(l, 3));
    else if (strcmp(kind, "rerun") == 0)
        *out = json_pack("{s:s, s:s}", "command", "tally rerun build/reports/law/report.html#fig-1", "text",
                         zh(l) ? "在你的機器上重跑：" : "Run it again on your machine:");
    else
        return tl_fail(e, TL_INVALID, "no block of kind %s", kind);
    return *out ? TL_OK : tl_fail(e, TL_INTERNAL, "the fake source could not pack '%s'", kind);
}
