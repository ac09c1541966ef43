/* Request bodies. What a dialect cannot say is refused, not dropped: a run that asked for ignore_eos and silently did
 * not get it measures something else. */
#include <math.h>

#include "engine/dialect_impl.h"

static tl_status refuse(const char *dialect, const char *what, const char *instead, tl_err *e)
{
    tl_fail(e, TL_INVALID, "%s cannot express %s", dialect, what);
    return tl_remedy(e, "%s", instead);
}

static json_t *user_message(const char *text)
{
    json_t *m = json_object(), *list = json_array();
    json_object_set_new(m, "role", json_string("user"));
    json_object_set_new(m, "content", json_string(text));
    json_array_append_new(list, m);
    return list;
}

static tl_status set_messages(json_t *body, const char *dialect, const tl_prompt *p, tl_err *e)
{
    if (p->tokens) return refuse(dialect, "a prompt of token ids", "use the dialect llamacpp-completion", e);
    if (p->text && !tl_utf8_valid(p->text, strlen(p->text)))
        return tl_fail(e, TL_INVALID, "%s: the prompt is not valid UTF-8", dialect);
    json_t *m = p->text ? user_message(p->text) : json_deep_copy(p->messages);
    json_object_set_new(body, "messages", m);
    return TL_OK;
}

static void set_sampling(json_t *to, const tl_gen *g)
{
    if (isfinite(g->temperature)) json_object_set_new(to, "temperature", tl_json_real(g->temperature));
    if (g->seed >= 0) json_object_set_new(to, "seed", json_integer(g->seed));
}

/* Fields of llama.cpp that its OpenAI end points take too; other servers ignore or refuse them, so only when asked. */
static void set_llamacpp(json_t *body, const tl_gen *g)
{
    if (g->ignore_eos) json_object_set_new(body, "ignore_eos", json_true());
    if (g->cache_prompt >= 0) json_object_set_new(body, "cache_prompt", json_boolean(g->cache_prompt));
    if (g->id_slot >= 0) json_object_set_new(body, "id_slot", json_integer(g->id_slot));
    if (g->return_progress) json_object_set_new(body, "return_progress", json_true());
}

static void set_openai(json_t *body, const tl_gen *g)
{
    json_t *opt = json_object();
    json_object_set_new(opt, "include_usage", json_true());
    json_object_set_new(body, "stream_options", opt);
    if (g->max_tokens >= 0) json_object_set_new(body, "max_tokens", json_integer(g->max_tokens));
    set_sampling(body, g);
    set_llamacpp(body, g);
}

tl_status tl_dialect_body_openai(json_t *body, const tl_prompt *p, const tl_gen *g, tl_err *e)
{
    tl_status st = set_messages(body, "openai-chat", p, e);
    if (st != TL_OK) return st;
    if (g->num_ctx > 0)
        return refuse("openai-chat", "num_ctx", "set the context length when the engine is started", e);
    set_openai(body, g);
    if (g->enable_thinking >= 0) { /* a JSON boolean: llama.cpp refuses the string "false" */
        json_t *kw = json_object();
        json_object_set_new(kw, "enable_thinking", json_boolean(g->enable_thinking));
        json_object_set_new(body, "chat_template_kwargs", kw);
    }
    return st;
}

static tl_status set_raw_prompt(json_t *body, const char *dialect, const tl_prompt *p, const tl_gen *g, tl_err *e)
{
    if (p->messages) return refuse(dialect, "messages", "use openai-chat, or apply the template first", e);
    if (g->enable_thinking >= 0) return refuse(dialect, "enable_thinking", "use openai-chat: the template decides it", e);
    if (g->num_ctx > 0) return refuse(dialect, "num_ctx", "set the context length when the engine is started", e);
    if (p->text && !tl_utf8_valid(p->text, strlen(p->text)))
        return tl_fail(e, TL_INVALID, "%s: the prompt is not valid UTF-8", dialect);
    json_t *prompt = p->text ? json_string(p->text) : json_array();
    for (size_t i = 0; !p->text && i < p->n_tokens; i++) json_array_append_new(prompt, json_integer(p->tokens[i]));
    json_object_set_new(body, "prompt", prompt);
    return TL_OK;
}

tl_status tl_dialect_body_openai_text(json_t *body, const tl_prompt *p, const tl_gen *g, tl_err *e)
{
    tl_status st = set_raw_prompt(body, "openai-completion", p, g, e);
    if (st == TL_OK) set_openai(body, g);
    return st;
}

tl_status tl_dialect_body_llamacpp(json_t *body, const tl_prompt *p, const tl_gen *g, tl_err *e)
{
    tl_status st = set_raw_prompt(body, "llamacpp-completion", p, g, e);
    if (st != TL_OK) return st;
    if (g->max_tokens >= 0) json_object_set_new(body, "n_predict", json_integer(g->max_tokens));
    json_object_set_new(body, "timings_per_token", json_false());
    set_sampling(body, g);
    set_llamacpp(body, g);
    return st;
}

tl_status tl_dialect_body_ollama(json_t *body, const tl_prompt *p, const tl_gen *g, tl_err *e)
{
    const char *name = "ollama-chat";
    if (g->ignore_eos)
        return refuse(name, "ignore_eos", "Ollama has no exact output length; drive the same model with llama-server", e);
    if (g->cache_prompt >= 0 || g->id_slot >= 0 || g->return_progress)
        return refuse(name, "cache_prompt, id_slot or return_progress",
                      "for a cold prompt unload the model, or make its first words unique", e);
    tl_status st = set_messages(body, name, p, e);
    if (st != TL_OK) return st;
    json_t *opt = json_object();
    if (g->max_tokens >= 0) json_object_set_new(opt, "num_predict", json_integer(g->max_tokens));
    if (g->num_ctx > 0) json_object_set_new(opt, "num_ctx", json_integer(g->num_ctx));
    set_sampling(opt, g);
    json_object_set_new(body, "options", opt);
    if (g->enable_thinking >= 0) json_object_set_new(body, "think", json_boolean(g->enable_thinking));
    return st;
}
