/* The public calls: each pushes a small C function and its arguments and goes through script_call, so that nothing that
 * can raise a Lua error runs outside a protected call. */
#include "script/script_impl.h"

#include "os/os.h"

/* Everything a protected step needs travels by light userdata: no Lua memory is touched before the call. */
typedef struct step {
    tl_script *s;
    const json_t *arg;
    const char *module, *function;
    json_t *out;
} step;

static tl_status run_step(tl_script *s, lua_CFunction f, step *p, tl_err *e) {
    p->s = s;
    lua_pushcfunction(s->L, f);
    lua_pushlightuserdata(s->L, p);
    tl_status st = script_call(s, 1, 0, e);
    if (st != TL_OK && p->out != NULL) {
        json_decref(p->out);
        p->out = NULL;
    }
    return st;
}

static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? tl_xstrndup(path, (size_t)(slash - path)) : tl_xstrdup(".");
}

/* schema.lua finds the line of a field in the script's own text. */
static void remember_source(lua_State *L, const char *path, const char *text) {
    lua_pushstring(L, path);
    lua_setfield(L, LUA_REGISTRYINDEX, "tl.source_name");
    lua_pushstring(L, text);
    lua_setfield(L, LUA_REGISTRYINDEX, "tl.source_text");
}

/* Some errors ("not enough memory") come from Lua without a place: the file at least is always named. */
static tl_status name_file(tl_status st, const char *path, tl_err *e) {
    if (st != TL_OK && e != NULL && strstr(e->msg, path) == NULL) tl_wrap(e, "%s", path);
    return st;
}

static tl_status run_chunk(tl_script *s, const char *path, const char *text, tl_err *e) {
    char *chunk = tl_xprintf("@%s", path);
    remember_source(s->L, path, text);
    tl_status st = script_compile(s, text, strlen(text), chunk, e);
    free(chunk);
    if (st == TL_OK) st = script_call(s, 0, 1, e);
    if (st != TL_OK) return name_file(st, path, e);
    if (!lua_istable(s->L, -1)) {
        st = tl_fail(e, TL_SCRIPT, "%s: the file must return a table, it returned %s", path, luaL_typename(s->L, -1));
        tl_remedy(e, "end the file with `return tally.experiment { ... }` (or the kind of table it is)");
        lua_pop(s->L, 1);
    }
    return st;
}

tl_status tl_script_load(tl_script *s, const char *path, const char *text, tl_err *e) {
    free(s->folder);
    s->folder = folder_of(path);
    tl_status st = run_chunk(s, path, text, e);
    if (st != TL_OK) return st;
    luaL_unref(s->L, LUA_REGISTRYINDEX, s->object);
    s->object = luaL_ref(s->L, LUA_REGISTRYINDEX);
    return TL_OK;
}

static int step_object(lua_State *L) {
    step *p = lua_touserdata(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, p->s->object);
    p->out = script_to_json(L, -1);
    return 0;
}

tl_status tl_script_object(json_t **out, tl_script *s, tl_err *e) {
    *out = NULL;
    if (s->object == LUA_NOREF) return tl_fail(e, TL_INTERNAL, "no script is loaded");
    step p = {0};
    tl_status st = run_step(s, step_object, &p, e);
    *out = p.out;
    return st;
}

static int step_predict(lua_State *L) {
    step *p = lua_touserdata(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, p->s->object);
    if (lua_getfield(L, -1, "predict") == LUA_TNIL) {
        p->out = json_null();
        return 0;
    }
    script_push_json(L, p->arg);
    lua_call(L, 1, 1);
    if (!lua_isnil(L, -1) && script_test_value(L, -1) == NULL)
        return luaL_error(L, "predict must return a value (number, unit, label, source), it returned %s; build it with "
                             "tally.calc or tally.derived", luaL_typename(L, -1));
    p->out = script_to_json(L, -1);
    return 0;
}

tl_status tl_script_predict(json_t **out, tl_script *s, const json_t *cell, tl_err *e) {
    *out = NULL;
    if (s->object == LUA_NOREF) return tl_fail(e, TL_INTERNAL, "no script is loaded");
    step p = {.arg = cell};
    tl_status st = run_step(s, step_predict, &p, e);
    *out = p.out;
    return st;
}

static int step_take(lua_State *L) { /* the table under the light userdata argument was left in the registry */
    step *p = lua_touserdata(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, "tl.result");
    p->out = script_to_json(L, -1);
    return 0;
}

static tl_status take_top(json_t **out, tl_script *s, tl_err *e) {
    lua_setfield(s->L, LUA_REGISTRYINDEX, "tl.result");
    step p = {0};
    tl_status st = run_step(s, step_take, &p, e);
    *out = p.out;
    lua_pushnil(s->L);
    lua_setfield(s->L, LUA_REGISTRYINDEX, "tl.result");
    return st;
}

tl_status tl_script_data(json_t **out, tl_script *s, const char *path, const char *text, tl_err *e) {
    *out = NULL;
    tl_status st = run_chunk(s, path, text, e);
    return st == TL_OK ? take_top(out, s, e) : st;
}

tl_status tl_script_eval(json_t **out, tl_script *s, const char *text, const char *name, int line, tl_err *e) {
    *out = NULL;
    /* newlines in front make Lua count the lines of the surrounding file */
    tl_buf b;
    tl_buf_init(&b, 0);
    for (int i = 1; i < line; i++) tl_buf_char(&b, '\n');
    tl_buf_str(&b, "return ");
    const char *p = text + strspn(text, " \t\r\n");
    for (const char *q = text; q < p; q++)
        if (*q == '\n') tl_buf_char(&b, '\n');
    if (*p != '{') tl_buf_char(&b, '{');
    tl_buf_str(&b, p);
    if (*p != '{') tl_buf_str(&b, "\n}");
    char *chunk = tl_xprintf("@%s", name);
    tl_status st = script_compile(s, b.p, b.len, chunk, e);
    free(chunk);
    tl_buf_free(&b);
    if (st != TL_OK) return st;
    st = script_call(s, 0, 1, e);
    return st == TL_OK ? take_top(out, s, e) : st;
}

static int step_call(lua_State *L) {
    step *p = lua_touserdata(L, 1);
    lua_getglobal(L, "require");
    lua_pushstring(L, p->module);
    lua_call(L, 1, 1);
    if (lua_getfield(L, -1, p->function) != LUA_TFUNCTION)
        return luaL_error(L, "module '%s' has no function '%s'", p->module, p->function);
    script_push_json(L, p->arg);
    lua_call(L, 1, 1);
    p->out = script_to_json(L, -1);
    return 0;
}

tl_status tl_script_call(json_t **out, tl_script *s, const char *module, const char *function, const json_t *arg,
                         tl_err *e) {
    step p = {.arg = arg, .module = module, .function = function};
    tl_status st = run_step(s, step_call, &p, e);
    *out = p.out;
    return st;
}

tl_status tl_script_library(char **out, const tl_script *s, const char *name, tl_err *e) {
    *out = NULL;
    if (s != NULL && s->lua_dir != NULL) {
        char *path = tl_xprintf("%s/%s", s->lua_dir, name);
        tl_buf b;
        tl_buf_init(&b, 0);
        if (tl_file_read(&b, path, 4 << 20, NULL) == TL_OK) *out = tl_buf_take(&b);
        tl_buf_free(&b);
        free(path);
    }
    for (size_t i = 0; *out == NULL && i < tl_embedded_count; i++)
        if (strcmp(tl_embedded_files[i].name, name) == 0)
            *out = tl_xstrndup(tl_embedded_files[i].text, tl_embedded_files[i].len);
    if (*out != NULL) return TL_OK;
    const char *near = tl_nearest(name, tl_script_library_names(), tl_embedded_count);
    tl_fail(e, TL_NOT_FOUND, "no file '%s' in tally's Lua library", name);
    return near ? tl_remedy(e, "did you mean '%s'?", near) : TL_NOT_FOUND;
}
