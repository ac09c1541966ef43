/* All fields of a description. Checks, defaults, messages and documentation read this table and nothing else. */
#include "plan/plan_impl.h"

#define NONE 1, 0 /* no bounds: min > max */
#define ANY 0, 9007199254740992.0

static const tl_plan_field fields[] = {
    {"schema", TL_PLAN_INT, NULL, false, false, "1", 1, TL_PLAN_SCHEMA, NULL, "version of this form"},
    {"id", TL_PLAN_STRING, NULL, true, false, NULL, NONE, NULL, "lower-case words joined by '-', the same as the file's name"},
    {"map", TL_PLAN_STRING, NULL, true, false, NULL, NONE, "measure capacity throughput accuracy", "which of the four maps"},
    {"day", TL_PLAN_INT, NULL, false, false, NULL, 1, 30, NULL, "day of the series"},
    {"title", TL_PLAN_TEXTS, NULL, true, false, NULL, NONE, NULL, "title by language: zh, zh-Hant, zh-Hans, en"},
    {"question", TL_PLAN_TEXTS, NULL, true, false, NULL, NONE, NULL, "the one question this experiment answers, by language"},
    {"script", TL_PLAN_OBJECT, NULL, false, false, NULL, NONE, NULL, "the experiment file that described this plan"},
    {"script.name", TL_PLAN_STRING, NULL, true, false, NULL, NONE, NULL, "path in the project"},
    {"script.sha256", TL_PLAN_STRING, NULL, false, false, NULL, NONE, NULL, "of the text"},
    {"script.text", TL_PLAN_STRING, NULL, false, false, NULL, NONE, NULL, "the whole script"},
    {"axes", TL_PLAN_LIST, NULL, true, false, NULL, NONE, NULL, "what is varied; cells are the product, the last axis fastest"},
    {"axes[].name", TL_PLAN_STRING, NULL, true, false, NULL, NONE, NULL, "name of the axis"},
    {"axes[].values", TL_PLAN_LIST, NULL, true, false, NULL, NONE, NULL, "numbers, texts, true/false, or model references"},
    {"workload", TL_PLAN_OBJECT, NULL, true, false, NULL, NONE, NULL, "what one request asks for"},
    {"workload.kind", TL_PLAN_STRING, NULL, true, false, NULL, NONE, "chat completion", "form of the request"},
    {"workload.dialect", TL_PLAN_STRING, NULL, true, false, NULL, NONE, NULL, "wire dialect, as in openai-chat"},
    {"workload.prompt_tokens", TL_PLAN_INT, "tok", true, true, NULL, 1, 100000000, NULL, "exact length of the prompt"},
    {"workload.output_tokens", TL_PLAN_INT, "tok", true, true, NULL, 1, 100000000, NULL, "tokens to generate at most"},
    {"workload.cache", TL_PLAN_STRING, NULL, false, true, "\"cold\"", NONE, "cold warm primed", "state of the prompt cache, verified by the engine's count"},
    {"workload.concurrency", TL_PLAN_INT, NULL, false, true, "1", 1, 1024, NULL, "users at once"},
    {"workload.requests", TL_PLAN_INT, NULL, false, false, "1", 1, 1000000, NULL, "requests of each user in one visit of a cell"},
    {"workload.temperature", TL_PLAN_NUMBER, NULL, false, true, "0", 0, 100, NULL, "sampling temperature"},
    {"workload.ignore_eos", TL_PLAN_BOOL, NULL, false, false, "false", NONE, NULL, "go on past the end of the answer to the exact length"},
    {"workload.thinking", TL_PLAN_BOOL, NULL, false, true, "true", NONE, NULL, "may a thinking model think"},
    {"workload.timeout_s", TL_PLAN_NUMBER, "s", false, false, "600", 1, 86400, NULL, "limit of one request"},
    {"engine", TL_PLAN_OBJECT, NULL, false, false, "{}", NONE, NULL, "how the engine is started"},
    {"engine.name", TL_PLAN_STRING, NULL, false, false, "\"llamacpp\"", NONE, NULL, "an adapter of lua/engine/"},
    {"engine.context", TL_PLAN_INT, "tok", false, true, NULL, 1, 100000000, NULL, "context of each slot"},
    {"engine.slots", TL_PLAN_INT, NULL, false, true, NULL, 1, 4096, NULL, "requests served at once"},
    {"engine.threads", TL_PLAN_INT, NULL, false, true, NULL, 1, 4096, NULL, "threads while generating"},
    {"engine.batch", TL_PLAN_INT, "tok", false, true, NULL, 1, 1000000, NULL, "logical batch"},
    {"engine.ubatch", TL_PLAN_INT, "tok", false, true, NULL, 1, 1000000, NULL, "physical batch"},
    {"engine.gpu_layers", TL_PLAN_INT_OR_STRING, NULL, false, true, NULL, 0, 100000, NULL, "layers on the GPU: a number, all or auto"},
    {"engine.flash_attention", TL_PLAN_STRING, NULL, false, true, NULL, NONE, "on off auto", "flash attention"},
    {"engine.kv_type", TL_PLAN_STRING, NULL, false, true, NULL, NONE, "f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1", "type of the KV cache"},
    {"engine.ready_timeout_s", TL_PLAN_NUMBER, "s", false, false, "300", 1, 86400, NULL, "limit of the start"},
    {"engine.extra", TL_PLAN_LIST, NULL, false, false, NULL, NONE, NULL, "further arguments, passed as they are"},
    {"repeats", TL_PLAN_OBJECT, NULL, false, false, "{}", NONE, NULL, "how often each cell is measured"},
    {"repeats.min", TL_PLAN_INT, NULL, false, false, "5", 1, 1000000, NULL, "at least so many rounds"},
    {"repeats.max", TL_PLAN_INT, NULL, false, false, "30", 1, 1000000, NULL, "at most so many rounds"},
    {"repeats.until_ci", TL_PLAN_NUMBER, "1", false, false, "0.02", 0.0001, 1, NULL, "stop when the 95 % interval is within this share of the median"},
    {"repeats.warmup", TL_PLAN_INT, NULL, false, false, "1", 0, 1000, NULL, "requests after each engine start that are stored but not counted"},
    {"probe", TL_PLAN_OBJECT, NULL, false, false, "{}", NONE, NULL, "the machine's rulers, read next to each visit"},
    {"probe.bandwidth", TL_PLAN_BOOL, NULL, false, false, "true", NONE, NULL, "memory bandwidth before and after each visit"},
    {"probe.milliseconds", TL_PLAN_INT, "ms", false, false, "150", 20, 5000, NULL, "length of one probe"},
    {"seed", TL_PLAN_INT, NULL, false, false, "1", ANY, NULL, "of order and prompts"},
    {"order", TL_PLAN_STRING, NULL, false, false, "\"interleaved\"", NONE, "interleaved grouped", "grouped: cells that share an engine stand together"},
    {"accept", TL_PLAN_LIST, NULL, false, false, "[]", NONE, NULL, "rules that a good result keeps"},
    {"accept[].metric", TL_PLAN_STRING, NULL, true, false, NULL, NONE, "decode_rate ttft tpot e2e prefill_rate ratio implied_bandwidth", "what is judged"},
    {"accept[].min", TL_PLAN_NUMBER, NULL, false, false, NULL, NONE, NULL, "least allowed"},
    {"accept[].max", TL_PLAN_NUMBER, NULL, false, false, NULL, NONE, NULL, "most allowed"},
    {"accept[].within", TL_PLAN_STRING, NULL, false, false, NULL, NONE, "predicted", "inside the stored prediction's interval"},
    {"figures", TL_PLAN_LIST, NULL, false, false, "[]", NONE, NULL, "figures of the report; checked by the script layer"},
    {"only", TL_PLAN_LIST, NULL, false, false, NULL, NONE, NULL, "selectors: only cells that fit one of them"},
    {"predictions", TL_PLAN_OBJECT, NULL, false, false, NULL, NONE, NULL, "predicted value by cell key"},
};

const tl_plan_field *tl_plan_fields(size_t *n_out) {
    *n_out = TL_COUNT(fields);
    return fields;
}

const char *tl_plan_type_name(tl_plan_type t) {
    static const char *const names[] = {"a text", "an integer", "a number", "true or false", "a list", "an object",
                                        "texts by language", "an integer or a text"};
    return names[t];
}
