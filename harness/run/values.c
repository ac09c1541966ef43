/* Values on their way into the store: measured statistics as rows, derived trees with their inputs, each input stored
 * once. A value that is stored already carries its row in source.value_id. */
#include "run/run_impl.h"

#include <math.h>

tl_status run_store_measured(json_t **out, tl_run_ctx *c, const tl_run_measured *m, tl_err *e) {
    char id[TL_STORE_ID];
    bool interval = isfinite(m->lo) && isfinite(m->hi) && m->interval != NULL;
    tl_store_value v = {.run_id = c->id, .cell_key = m->cell_key, .name = m->name, .label = "measured", .number = m->number,
                        .null_reason = isfinite(m->number) ? NULL : "no successful request had this metric",
                        .lo = interval ? m->lo : NAN, .hi = interval ? m->hi : NAN, .interval = interval ? m->interval : NULL,
                        .n = m->n, .unit = m->unit, .statistic = m->statistic, .source = m->source};
    tl_status st = tl_store_value_add(id, c->spec->store, &v, e);
    if (out == NULL) return st;
    *out = NULL;
    if (st != TL_OK) return st;
    json_t *source = m->source ? json_copy(m->source) : json_object();
    json_object_set_new(source, "run", json_string(c->id));
    json_object_set_new(source, "value_id", json_string(id));
    if (m->cell_key) json_object_set_new(source, "cell", json_string(m->cell_key));
    *out = json_pack("{s:s, s:s, s:o, s:s, s:o}", "unit", m->unit, "label", "measured", "value", tl_json_real(m->number), "name",
                     m->name, "source", source);
    if (interval) {
        json_object_set_new(*out, "lo", json_real(m->lo));
        json_object_set_new(*out, "hi", json_real(m->hi));
    }
    if (!isfinite(m->number)) json_object_set_new(*out, "null_reason", json_string(v.null_reason));
    return TL_OK;
}

static tl_status store_inputs(tl_store_edge *edges, char (*ids)[TL_STORE_ID], tl_run_ctx *c, const char *cell_key,
                              const json_t *inputs, tl_err *e) {
    size_t i;
    json_t *in;
    json_array_foreach((json_t *)inputs, i, in) {
        tl_status st = run_store_tree(ids[i], c, cell_key, tl_json_str(in, "name", tl_json_str(in, "role", "input")), in, e);
        if (st != TL_OK) return st;
        edges[i] = (tl_store_edge){ids[i], tl_json_str(in, "role", "input")};
    }
    return TL_OK;
}

tl_status run_store_tree(char id[TL_STORE_ID], tl_run_ctx *c, const char *cell_key, const char *name, const json_t *value,
                         tl_err *e) {
    const char *known = tl_json_str(value, "source.value_id", NULL);
    if (known != NULL) {
        snprintf(id, TL_STORE_ID, "%s", known);
        return TL_OK;
    }
    const json_t *inputs = json_object_get(value, "inputs");
    size_t n = json_array_size(inputs);
    tl_store_edge *edges = tl_xalloc(n * sizeof *edges);
    char(*ids)[TL_STORE_ID] = tl_xalloc(n * sizeof *ids);
    tl_status st = store_inputs(edges, ids, c, cell_key, inputs, e);
    double lo = tl_json_num(value, "lo", NAN), hi = tl_json_num(value, "hi", NAN);
    tl_store_value v = {.run_id = c->id, .cell_key = cell_key, .name = name, .label = tl_json_str(value, "label", NULL),
                        .number = tl_json_num(value, "value", NAN), .null_reason = tl_json_str(value, "null_reason", NULL),
                        .lo = lo, .hi = hi, .interval = isfinite(lo) ? "interval arithmetic over the inputs" : NULL,
                        .n = TL_STORE_NONE, .unit = tl_json_str(value, "unit", NULL),
                        .formula = tl_json_str(value, "formula", NULL), .source = json_object_get(value, "source"),
                        .edges = edges, .edges_n = n};
    if (st == TL_OK) st = tl_store_value_add(id, c->spec->store, &v, e);
    free(edges);
    free(ids);
    return st;
}

/* A fact that tally counted in the model file of this run. */
static tl_status file_fact(json_t **out, tl_run_ctx *c, const tl_run_cell *cell, const char *name, double number,
                           const char *unit, tl_err *e) {
    json_t *source = json_pack("{s:s, s:s?, s:s?}", "how", "summed from the tensor table in the file's header", "model_sha256",
                               tl_json_str(cell->model, "sha256", NULL), "model",
                               tl_json_str(cell->params, "model", NULL));
    tl_run_measured m = {.name = name, .unit = unit, .cell_key = cell->key, .number = number, .lo = NAN, .hi = NAN,
                         .n = 1, .source = source};
    tl_status st = run_store_measured(out, c, &m, e);
    json_decref(source);
    return st;
}

tl_status run_predict_argument(json_t **out, tl_run_ctx *c, size_t index, json_t *bandwidth, tl_err *e) {
    tl_run_cell *cell = &c->cells[index];
    tl_status st = TL_OK;
    *out = NULL;
    if (cell->facts == NULL) { /* stored once a cell, used by every prediction of it */
        json_t *weights = NULL, *kv = NULL;
        st = file_fact(&weights, c, cell, "weights_read", (double)tl_json_int(cell->model, "weights_read_bytes", 0) / 1e9,
                       "GB/tok", e);
        if (st == TL_OK)
            st = file_fact(&kv, c, cell, "kv_per_position", (double)tl_json_int(cell->model, "kv_bytes_per_position", 0),
                           "byte/tok", e);
        if (st == TL_OK)
            cell->facts = json_pack("{s:O, s:O, s:s?, s:s?, s:O?}", "weights_read", weights, "kv_per_position", kv, "name",
                                    tl_json_str(cell->params, "model", NULL), "sha256",
                                    tl_json_str(cell->model, "sha256", NULL), "layers", json_object_get(cell->model, "layers"));
        json_decref(weights);
        json_decref(kv);
    }
    if (st != TL_OK) return st;
    double positions = (double)tl_json_int(cell->workload, "prompt_tokens", 0) +
                       (double)tl_json_int(cell->workload, "output_tokens", 0) / 2;
    json_t *arg = json_deep_copy(cell->params);
    json_object_set_new(arg, "machine", json_pack("{s:O}", "bandwidth", bandwidth));
    json_object_set(arg, "model", cell->facts);
    json_object_set_new(arg, "positions", json_real(positions));
    *out = arg;
    return TL_OK;
}
