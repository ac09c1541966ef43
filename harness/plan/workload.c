/* A workload as a whole: what each kind of schedule needs, what it does not know, and lengths that fit together. */
#include "plan/plan_impl.h"

typedef struct schedule_kind {
    const char *kind, *needs, *knows; /* field names separated by blanks, each with a blank around */
} schedule_kind;

#define COMMON " kind slo drain_s settle_s abort_error_share ruler_share workers cpus "
static const schedule_kind kinds[] = {
    {"closed", " ", COMMON "think think_s ramp_s "},
    {"open", " rate ", COMMON "rate rate_to arrival burstiness think think_s max_in_flight "},
    {"trace", " file ", COMMON "file speed max_in_flight "},
    {"search", " slo over from to ",
     COMMON "over from to resolution arrival burstiness think think_s ramp_s max_in_flight "},
};

static bool listed(const char *list, const char *name) {
    char word[48];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(list, word) != NULL;
}

static const schedule_kind *kind_of(const json_t *schedule) {
    const char *name = tl_json_str(schedule, "kind", "");
    for (size_t i = 0; i < TL_COUNT(kinds); i++)
        if (strcmp(kinds[i].kind, name) == 0) return &kinds[i];
    return NULL;
}

static tl_status check_needs(const plan_check *c, const schedule_kind *k, const json_t *schedule) {
    char list[64];
    snprintf(list, sizeof list, "%s", k->needs);
    for (char *p = list; *(p += strspn(p, " ")) != 0;) {
        size_t len = strcspn(p, " ");
        char path[96];
        snprintf(path, sizeof path, "workload.schedule.%.*s", (int)len, p);
        p += len;
        if (json_object_get(schedule, path + strlen("workload.schedule.")) != NULL) continue;
        plan_fail(c, path, "a schedule of kind '%s' needs the field '%s'", k->kind, path);
        return tl_remedy(c->e, "%s: %s", path, plan_field(path)->help);
    }
    return TL_OK;
}

static tl_status check_schedule(const plan_check *c, const json_t *w, const json_t *schedule) {
    const schedule_kind *k = kind_of(schedule);
    const char *key;
    json_t *v;
    if (k == NULL) return plan_fail(c, "workload.schedule", "a schedule needs a kind");
    json_object_foreach((json_t *)schedule, key, v) {
        char path[96];
        if (listed(k->knows, key)) continue;
        snprintf(path, sizeof path, "workload.schedule.%.60s", key);
        plan_fail(c, path, "a schedule of kind '%s' has no '%s'", k->kind, key);
        return tl_remedy(c->e, "its fields are:%s", k->knows);
    }
    tl_status st = check_needs(c, k, schedule);
    if (st != TL_OK) return st;
    double from = tl_json_num(schedule, "from", 0), to = tl_json_num(schedule, "to", 0);
    if (from > to) return plan_fail(c, "workload.schedule.from", "the search goes from %g to %g", from, to);
    bool open = !tl_str_eq(k->kind, "closed") && !tl_str_eq(tl_json_str(schedule, "over", ""), "users");
    if (open && tl_json_int(w, "concurrency", 1) != 1) {
        plan_fail(c, "workload.concurrency", "requests that come by themselves have no users to count: concurrency is %" PRId64,
                  tl_json_int(w, "concurrency", 1));
        return tl_remedy(c->e, "leave `concurrency` out; `requests` is the number of all requests then");
    }
    return TL_OK;
}

tl_status plan_check_workload(const plan_check *c, const json_t *w) {
    const json_t *schedule = json_object_get(w, "schedule");
    int64_t prompt = tl_json_int(w, "prompt_tokens", 0), prefix = tl_json_int(w, "prefix.tokens", 0);
    if (prefix >= prompt && prefix > 0)
        return plan_fail(c, "workload.prefix.tokens", "the shared prefix (%" PRId64 " tokens) leaves nothing of the prompt (%" PRId64 ")",
                         prefix, prompt);
    if (json_object_get(w, "sessions") != NULL && json_object_get(w, "prefix") != NULL)
        return plan_fail(c, "workload.sessions", "sessions and a shared prefix cannot be combined");
    return schedule ? check_schedule(c, w, schedule) : TL_OK;
}
