/* tally synth: writes a synthetic model. Its options are the writer's own table. */
#include "cli/cli.h"
#include "model/model.h"

static const tl_option options[] = {
    {.name = "output",
     .letter = 'o',
     .arg = "FILE",
     .help = "the .gguf to write; replaced only when it is complete",
     .complete = TL_COMPLETE_FILE},
    {.name = "describe", .help = "say what would be written, to the byte, and write nothing"},
    {0}};

static const tl_option *more(size_t i) {
    static tl_option made[64];
    size_t n;
    const tl_synth_option *s = tl_synth_options(&n);
    if (i >= n || i >= TL_COUNT(made)) return NULL;
    made[i] = (tl_option){.name = s[i].name, .arg = s[i].arg, .help = s[i].help, .otherwise = s[i].otherwise};
    return &made[i];
}

static const tl_example examples[] = {
    {"tally synth llama --size 350MB --quant q4_0 -o m.gguf", "about 350 MB, in a plausible shape"},
    {"tally synth llama --layers 32 --embed 2560 --heads 32 --kv-heads 8 --ff 6912 --quant q4_0 -o m.gguf",
     "exactly this shape"},
    {"tally synth --size 100MB --think 32 --answer 200 -o talk.gguf",
     "thinks 32 tokens and answers 200, whatever the prompt"},
    {0}};

static const tl_exit exits[] = {{0, "written"},
                                {1, "the disk refused, or it was stopped; nothing is left"},
                                {2, "the command line is wrong, or no model can have this shape"},
                                {0, NULL}};

typedef struct work {
    tl_progress progress;
    double start_s;
} work;

static double now_s(void) {
    return (double)tl_clock_now() / 1e9;
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total) {
    work *w = ctx;
    char detail[64];
    snprintf(detail, sizeof detail, "%.0f of %.0f MB", (double)done / 1e6, (double)total / 1e6);
    w->progress.total = (double)total;
    tl_progress_set(&w->progress, (double)done, detail, now_s());
    return !tl_cli_cancelled(NULL);
}

static tl_status read_spec(tl_synth_spec *spec, tl_cli *c, tl_err *e) {
    *spec = tl_synth_default();
    for (size_t i = 0; i < c->n_given; i++) {
        bool ours = false;
        const tl_option *o;
        for (size_t k = 0; (o = more(k)) != NULL; k++) ours = ours || o == c->given[i].option;
        if (!ours) continue;
        tl_status st = tl_synth_set(spec, c->given[i].option->name, c->given[i].value, e);
        if (st != TL_OK) return st;
    }
    return TL_OK;
}

static void print(tl_cli *c, const tl_synth_plan *p, const char *path, double took_s) {
    if (c->json) {
        json_t *j =
            json_pack("{s:s?, s:s, s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I, s:I}}", "path", path,
                      "quant", p->spec.quant, "file_bytes", (json_int_t)p->file_bytes, "tensor_bytes",
                      (json_int_t)p->tensor_bytes, "params", (json_int_t)p->params, "read_bytes_per_token",
                      (json_int_t)p->read_bytes_per_token, "kv_bytes_per_token_f16",
                      (json_int_t)p->kv_bytes_per_token_f16, "shape", "layers", (json_int_t)p->spec.layers,
                      "embed", (json_int_t)p->spec.embed, "heads", (json_int_t)p->spec.heads, "kv_heads",
                      (json_int_t)p->spec.kv_heads, "ff", (json_int_t)p->spec.ff);
        tl_cli_print_json(c, j);
        json_decref(j);
        return;
    }
    fprintf(c->out, "%s: %" PRIu64 " bytes, %s, %u layers, embed %u, heads %u/%u, ff %u\n",
            path ? path : "would write", p->file_bytes, p->spec.quant, p->spec.layers, p->spec.embed,
            p->spec.heads, p->spec.kv_heads, p->spec.ff);
    fprintf(c->out,
            "each token reads %" PRIu64 " bytes of weights and %" PRIu64
            " bytes of KV cache for each position (f16)\n",
            p->read_bytes_per_token, p->kv_bytes_per_token_f16);
    if (path != NULL)
        tl_log(TL_LOG_INFO, "%.0f MB/s", (double)p->file_bytes / 1e6 / (took_s > 0 ? took_s : 1e-9));
}

static tl_status run(tl_cli *c, tl_err *e) {
    tl_synth_spec spec;
    tl_synth_plan plan;
    const char *path = tl_cli_text(c, "output", NULL);
    bool describe = tl_cli_flag(c, "describe");
    if (c->n_args == 1 && strcmp(c->args[0], "llama") != 0) {
        tl_cli_usage(c, e, "synth: unknown architecture '%.40s'", c->args[0]);
        tl_remedy(e, "the architecture that can be written is llama");
        return TL_INVALID;
    }
    if (path == NULL && !describe) return tl_cli_usage(c, e, "synth: -o FILE is missing");
    tl_status st = read_spec(&spec, c, e);
    if (st == TL_OK) st = tl_synth_describe(&plan, &spec, e);
    if (st != TL_OK || describe) {
        if (st == TL_OK) print(c, &plan, NULL, 0);
        return st;
    }
    work w = {.start_s = now_s()};
    tl_progress_start(&w.progress, "writing", (double)plan.file_bytes, w.start_s);
    st = tl_synth_write(path, &spec, on_progress, &w, e);
    tl_progress_end(&w.progress);
    if (st == TL_OK) print(c, &plan, path, now_s() - w.start_s);
    return st;
}

const tl_verb tl_verb_synth = {
    .name = "synth",
    .summary = "write a synthetic model, to measure a model's speed before downloading it",
    .usage = "[llama] -o FILE",
    .about =
        "Every weight is there and is read for each token, so speed and memory are those of a real model of "
        "that shape; the text "
        "is noise, or with --answer a fixed text. The same options give the same bytes on every machine.",
    .options = options,
    .more_options = more,
    .examples = examples,
    .exits = exits,
    .min_args = 0,
    .max_args = 1,
    .run = run,
};
