/* The tools and the forms, as data; and which of them a text is. */
#include "import/import_impl.h"

static const imp_tool tools[] = {
    {.name = "llama-bench", .forms = "JSON, JSON lines", .must = {"n_prompt", "n_gen", "avg_ts", "model_filename"},
     .fields = imp_llama_bench, .others = IMP_SETTING,
     .missing = {"the model's digest", "power and clocks of the machine"}},
    {.name = "llama-batched-bench", .forms = "JSON lines", .must = {"pp", "tg", "pl", "speed_pp", "speed_tg"},
     .fields = imp_batched_bench, .others = IMP_SETTING,
     .missing = {"the model", "repeats: each row is one pass"}},
};

static imp_cutter *const cutters[] = {imp_cut_objects};

const imp_tool *imp_tool_at(size_t i) {
    return i < TL_COUNT(tools) ? &tools[i] : NULL;
}

const char *tl_import_tool(size_t i, const char **forms) {
    if (i >= TL_COUNT(tools)) return NULL;
    if (forms) *forms = tools[i].forms;
    return tools[i].name;
}

bool imp_has_all(const json_t *fields, const imp_tool *t, const char **lacks) {
    for (size_t i = 0; i < TL_COUNT(t->must) && t->must[i] != NULL; i++)
        if (json_object_get(fields, t->must[i]) == NULL) {
            if (lacks) *lacks = t->must[i];
            return false;
        }
    return true;
}

static const imp_tool *tool_of(const json_t *fields, const char *only) {
    for (size_t i = 0; i < TL_COUNT(tools); i++)
        if ((only == NULL || tl_str_eq(only, tools[i].name)) && imp_has_all(fields, &tools[i], NULL)) return &tools[i];
    return NULL;
}

bool imp_known(const json_t *fields) {
    return tool_of(fields, NULL) != NULL;
}

const imp_tool *imp_recognise(imp_text *t, const char *only) {
    for (size_t k = 0; k < TL_COUNT(cutters); k++) {
        imp_text_clear(t);
        if (!cutters[k](t)) continue;
        for (size_t i = 0; i < t->n; i++) {
            const imp_tool *tool = t->v[i].fields ? tool_of(t->v[i].fields, only) : NULL;
            if (tool != NULL) return tool;
        }
    }
    return NULL;
}
