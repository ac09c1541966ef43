/* A report's text is never trusted: whatever the bytes are, the check ends with a verdict. The source answers
 * every value with one that is right, and every block with an error. */
#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static tl_status value(json_t **out, void *ctx, const char *expr, const tl_report_pos *pos, tl_err *e) {
    TL_UNUSED(expr), TL_UNUSED(pos), TL_UNUSED(e);
    *out = json_incref(ctx);
    return TL_OK;
}

static tl_status block(json_t **out, void *ctx, const char *kind, const json_t *attrs, const char *text,
                       const tl_report_pos *pos, tl_err *e) {
    TL_UNUSED(out), TL_UNUSED(ctx), TL_UNUSED(attrs), TL_UNUSED(text), TL_UNUSED(pos);
    return tl_fail(e, TL_INVALID, "no %s here", kind);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    json_t *v =
        json_pack("{s:f, s:s, s:s, s:s}", "value", 1.5, "unit", "GB/s", "label", "measured", "run", "01J");
    const tl_report_source source = {v, value, block};
    const tl_report_spec spec = {
        .path = "fuzz.md", .text = (const char *)p, .text_len = n, .name = "fuzz", .check_only = true};
    json_t *facts = NULL;
    tl_err e = {0};
    if (n > 0 && tl_report_build(&facts, &spec, &source, &e) != TL_OK && e.msg[0] == 0)
        abort(); /* no failure without a reason */
    json_decref(facts);
    json_decref(v);
    return 0;
}
