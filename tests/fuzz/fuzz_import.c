/* Other tools' files, any bytes: refused with words, or read so that every number is one or says why it is none, and so that
 * what was found is what was read and refused. */
#include <assert.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(json_t *j) {
    json_t *row, *f;
    size_t i, k;
    assert((size_t)tl_json_int(j, "found", -1) == json_array_size(json_object_get(j, "rows")) + json_array_size(json_object_get(j, "refused")));
    json_array_foreach(json_object_get(j, "rows"), i, row) json_array_foreach(json_object_get(row, "figures"), k, f) {
        assert(json_is_number(json_object_get(f, "number")) != json_is_string(json_object_get(f, "null_reason")));
        assert(tl_json_str(f, "name", NULL) && tl_json_str(f, "unit", NULL));
    }
    json_array_foreach(json_object_get(j, "refused"), i, row) assert(tl_json_str(row, "reason", NULL) && tl_json_int(row, "line", 0) > 0);
    json_array_foreach(json_object_get(j, "other"), i, row) assert(tl_json_str(row, "text", NULL));
    char *text = tl_json_canonical(j);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const tl_import_options partial = {.partial = true};
    for (int k = 0; k < 2; k++) {
        tl_err e = {0};
        json_t *j = NULL;
        tl_status st = tl_import_read(&j, data, size, "fuzz", k ? &partial : NULL, &e);
        assert((st == TL_OK) == (j != NULL) && (st == TL_OK || e.msg[0]));
        if (j) check(j);
        json_decref(j);
    }
    return 0;
}
