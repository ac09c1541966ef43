/* The record as JSON, and as one line for people. */
#include "vcs/vcs.h"

const char *tl_vcs_state_name(tl_vcs_state s) {
    switch (s) {
    case TL_VCS_NONE:
        return "none";
    case TL_VCS_UNBORN:
        return "unborn";
    case TL_VCS_OK:
        return "ok";
    case TL_VCS_BARE:
        return "bare";
    case TL_VCS_BROKEN:
        return "broken";
    case TL_VCS_REFUSED:
        return "refused";
    case TL_VCS_UNSUPPORTED:
        return "unsupported";
    }
    return "unknown";
}

/* Paths may be any bytes; JSON may not. */
static json_t *text(const char *s) {
    if (!s || !*s) return json_null();
    json_t *j = json_string(s);
    if (j) return j;
    char *copy = tl_xstrdup(s);
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p >= 0x80) *p = '?';
    j = json_string(copy);
    free(copy);
    return j;
}

/* A reason may name folders: a person's home is nobody's business where the record is published. */
static json_t *message(const char *s) {
    const char *home = getenv("HOME");
    const char *at = s && home && strlen(home) > 1 ? strstr(s, home) : NULL;
    if (!at) return text(s);
    char *clean = tl_xprintf("%.*s~%s", (int)(at - s), s, at + strlen(home));
    json_t *j = message(clean);
    free(clean);
    return j;
}

static json_t *count(unsigned n) {
    return json_integer((json_int_t)n);
}

static void add_counts(json_t *j, const tl_vcs *v) {
    bool known = v->state == TL_VCS_OK || v->state == TL_VCS_UNBORN;
    json_object_set_new(j, "n_index", known ? count(v->n_index) : json_null());
    json_object_set_new(j, "n_worktree", known ? count(v->n_worktree) : json_null());
    json_object_set_new(j, "n_untracked", known ? count(v->n_untracked) : json_null());
    json_object_set_new(j, "n_conflict", known ? count(v->n_conflict) : json_null());
    json_object_set_new(j, "n_hidden", known ? count(v->n_hidden) : json_null());
    json_object_set_new(j, "dirty", known ? json_boolean(v->dirty) : json_null());
    json_object_set_new(j, "complete", json_boolean(v->complete));
    json_object_set_new(j, "patch_bytes", v->patch ? json_integer((json_int_t)v->patch_len) : json_null());
    json_object_set_new(j, "patch_cut", json_boolean(v->patch_cut));
    json_object_set_new(j, "patch_sha256", text(v->patch_sha256));
    json_object_set_new(j, "dirty_sha256", text(v->dirty_sha256));
}

json_t *tl_vcs_json(const tl_vcs *v) {
    json_t *j = json_object(), *remotes = json_array(), *modules = json_array();
    json_object_set_new(j, "state", json_string(tl_vcs_state_name(v->state)));
    json_object_set_new(j, "message", message(v->message));
    json_object_set_new(j, "path", text(v->path));
    json_object_set_new(j, "prefix", text(v->prefix));
    json_object_set_new(j, "commit", text(v->commit));
    json_object_set_new(j, "tree", text(v->tree));
    json_object_set_new(j, "commit_time_s", v->tree[0] ? json_integer(v->commit_time_s) : json_null());
    json_object_set_new(j, "branch", text(v->branch));
    json_object_set_new(j, "detached", json_boolean(v->detached));
    json_object_set_new(j, "shallow", json_boolean(v->shallow));
    json_object_set_new(j, "worktree", json_boolean(v->worktree));
    json_object_set_new(j, "merge_state", text(v->merge_state));
    add_counts(j, v);
    for (size_t i = 0; i < v->n_remotes; i++)
        json_array_append_new(remotes, json_pack("{s:o, s:o}", "name", text(v->remotes[i].name), "url",
                                                 text(v->remotes[i].url)));
    for (size_t i = 0; i < v->n_modules; i++) json_array_append_new(modules, tl_vcs_json(&v->modules[i]));
    json_object_set_new(j, "remotes", remotes);
    json_object_set_new(j, "modules", modules);
    json_object_set_new(j, "submodule", json_boolean(v->is_submodule));
    json_object_set_new(j, "pinned", text(v->pinned));
    json_object_set_new(j, "autocrlf", text(v->autocrlf));
    json_object_set_new(j, "file_mode", v->file_mode < 0 ? json_null() : json_boolean(v->file_mode));
    json_object_set_new(j, "libgit2", text(v->libgit2));
    return j;
}

char *tl_vcs_summary(const tl_vcs *v) {
    if (v->state == TL_VCS_NONE) return tl_xstrdup("no version control");
    if (v->state == TL_VCS_UNBORN) return tl_xstrdup("no commit yet");
    if (v->state == TL_VCS_BARE) return tl_xprintf("%.7s (bare)", v->commit);
    if (v->state != TL_VCS_OK) return tl_xprintf("revision unknown (%s)", tl_vcs_state_name(v->state));
    if (v->dirty) return tl_xprintf("%.7s (modified %.8s)", v->commit, v->dirty_sha256);
    return tl_xprintf("%.7s (%s)", v->commit, v->complete ? "clean" : "clean as far as git looks");
}
