/* Counters wherever servers put them. All are kept side by side; which one is believed is sample's decision.
 *
 * Shapes: OpenAI usage with details; SGLang (reasoning_tokens at usage's root); DeepSeek (cache hit and miss); Gemini
 * (usageMetadata); Groq (x_groq.usage, seconds inside usage); Moonshot (usage inside the choice); Mistral's empty
 * object; vLLM's per-request metrics; llama.cpp's timings; Ollama's counts and nanoseconds.
 */
#include <math.h>

#include "engine/dialect_impl.h"

static bool take_int(int64_t *out, const json_t *obj, const char *const *paths)
{
    for (; *paths; paths++) {
        const json_t *v = tl_json_at(obj, *paths);
        if (!json_is_number(v)) continue;
        const double d = json_number_value(v);
        if (!(d >= 0 && d < 9e18)) continue;
        *out = json_is_integer(v) ? (int64_t)json_integer_value(v) : (int64_t)d;
        return true;
    }
    return false;
}

static bool take_real(double *out, const json_t *obj, const char *path, double scale)
{
    const json_t *v = tl_json_at(obj, path);
    if (!json_is_number(v)) return false;
    *out = json_number_value(v) * scale;
    return true;
}

#define PATHS(...) (const char *const[]){ __VA_ARGS__, NULL }

/* Gemini counts thoughts beside candidates: its completion is the sum. */
static bool gemini(tl_counters *c, const json_t *u)
{
    int64_t answer = 0, thoughts = 0;
    const bool any = take_int(&answer, u, PATHS("candidatesTokenCount"));
    const bool thought = take_int(&thoughts, u, PATHS("thoughtsTokenCount"));
    take_int(&c->usage_prompt, u, PATHS("promptTokenCount"));
    take_int(&c->usage_cached, u, PATHS("cachedContentTokenCount"));
    take_int(&c->usage_total, u, PATHS("totalTokenCount"));
    if (any || thought) c->usage_completion = answer + thoughts;
    if (thought) c->usage_reasoning = thoughts;
    return any || thought;
}

bool tl_dialect_usage(tl_counters *c, const json_t *usage)
{
    int64_t completion = TL_ABSENT;
    if (!json_is_object(usage) || json_object_size(usage) == 0) return false;
    if (gemini(c, usage)) return true;
    const bool any = take_int(&completion, usage, PATHS("completion_tokens", "output_tokens", "generated_tokens"));
    const bool prompt = take_int(&c->usage_prompt, usage, PATHS("prompt_tokens", "input_tokens"));
    if (any) {
        c->usage_repeated = c->usage_repeated || c->usage_completion != TL_ABSENT;
        c->usage_completion = completion;
    }
    take_int(&c->usage_total, usage, PATHS("total_tokens"));
    take_int(&c->usage_cached, usage,
             PATHS("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens",
                   "prompt_cache_hit_tokens", "cached_tokens"));
    take_int(&c->usage_reasoning, usage,
             PATHS("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
                   "reasoning_tokens"));
    take_real(&c->engine_queue_ms, usage, "queue_time", 1e3);
    take_real(&c->engine_prompt_ms, usage, "prompt_time", 1e3);
    take_real(&c->engine_predicted_ms, usage, "completion_time", 1e3);
    return any || prompt;
}

static bool timings(tl_counters *c, const json_t *t)
{
    if (!json_is_object(t)) return false;
    take_int(&c->engine_prompt_n, t, PATHS("prompt_n"));
    take_int(&c->engine_cache_n, t, PATHS("cache_n"));
    take_int(&c->engine_predicted_n, t, PATHS("predicted_n"));
    take_real(&c->engine_prompt_ms, t, "prompt_ms", 1);
    take_real(&c->engine_predicted_ms, t, "predicted_ms", 1);
    take_int(&c->draft_n, t, PATHS("draft_n"));
    take_int(&c->draft_accepted, t, PATHS("draft_n_accepted"));
    return true;
}

/* vLLM: its TTFT counts from scheduling, so it is the prompt time without the queue. */
static bool vllm_metrics(tl_counters *c, const json_t *m)
{
    if (!json_is_object(m)) return false;
    take_real(&c->engine_queue_ms, m, "queue_time_ms", 1);
    take_real(&c->engine_prompt_ms, m, "time_to_first_token_ms", 1);
    take_real(&c->engine_predicted_ms, m, "generation_time_ms", 1);
    return true;
}

static bool ollama(tl_counters *c, const json_t *obj)
{
    if (!json_is_true(tl_json_at(obj, "done"))) return false;
    bool any = take_int(&c->engine_total_ns, obj, PATHS("total_duration"));
    take_int(&c->engine_load_ns, obj, PATHS("load_duration"));
    take_int(&c->engine_prompt_ns, obj, PATHS("prompt_eval_duration"));
    take_int(&c->engine_eval_ns, obj, PATHS("eval_duration"));
    if (take_int(&c->engine_prompt_n, obj, PATHS("prompt_eval_count"))) c->engine_prompt_n_has_cached = true;
    take_int(&c->engine_cache_n, obj, PATHS("prompt_eval_cached_count"));
    if (take_int(&c->engine_predicted_n, obj, PATHS("eval_count"))) any = true;
    return any;
}

/* llama.cpp's native last record; its timings, when there, know cached tokens apart. */
static bool native(tl_counters *c, const json_t *obj, bool has_timings)
{
    if (!json_is_true(tl_json_at(obj, "stop"))) return false;
    bool any = false;
    if (c->engine_predicted_n == TL_ABSENT || !has_timings)
        any = take_int(&c->engine_predicted_n, obj, PATHS("tokens_predicted"));
    if (c->engine_prompt_n == TL_ABSENT && take_int(&c->engine_prompt_n, obj, PATHS("tokens_evaluated")))
        any = c->engine_prompt_n_has_cached = true;
    return any;
}

bool tl_dialect_counters(tl_counters *c, const json_t *obj)
{
    bool any = false;
    const char *const usages[] = { "choices.0.usage", "x_groq.usage", "usageMetadata", "usage" };
    for (size_t i = 0; i < TL_COUNT(usages); i++)
        if (tl_dialect_usage(c, tl_json_at(obj, usages[i]))) any = true;
    const bool t = timings(c, tl_json_at(obj, "timings"));
    if (vllm_metrics(c, tl_json_at(obj, "metrics"))) any = true;
    if (ollama(c, obj)) any = true;
    if (native(c, obj, t)) any = true;
    return any || t;
}
