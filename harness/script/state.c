/* The Lua state: an allow list of globals, our own `require`, an instruction and a memory limit, and one protected call
 * through which every chunk and function runs. */
#include "script/script_impl.h"

#include "os/os.h"

static const char self_key = 0; /* its address is the registry key of the tl_script */

enum { STEP = 10000 };

tl_script *script_of(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &self_key);
    tl_script *s = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return s;
}

static void *allocate(void *ud, void *p, size_t old, size_t now) {
    tl_script *s = ud;
    if (p == NULL) old = 0;
    if (now == 0) {
        s->memory -= old;
        free(p);
        return NULL;
    }
    if (s->running && now > old && s->memory + (now - old) > s->max_memory) return NULL; /* Lua raises "not enough memory" */
    void *q = realloc(p, now);
    if (q != NULL) s->memory += now - old;
    return q;
}

static void count_hook(lua_State *L, lua_Debug *ar) {
    TL_UNUSED(ar);
    tl_script *s = script_of(L);
    s->steps += STEP;
    if (s->steps > s->max_steps)
        luaL_error(L, "the script ran %d million instructions without finishing: an endless loop?",
                   (int)(s->max_steps / 1000000));
}

/* Keeps tables {message=, remedy=} raised by the library; gives strings a traceback. */
static int on_error(lua_State *L) {
    if (lua_istable(L, 1)) return 1;
    const char *msg = lua_tostring(L, 1);
    luaL_traceback(L, L, msg ? msg : "(error value is not a string)", 1);
    return 1;
}

static tl_status report(tl_script *s, tl_err *e) {
    lua_State *L = s->L;
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "message");
        lua_getfield(L, -2, "remedy");
        const char *msg = lua_tostring(L, -2), *remedy = lua_tostring(L, -1);
        tl_fail(e, TL_SCRIPT, "%s", msg ? msg : "the script raised a table without a message");
        if (remedy) tl_remedy(e, "%s", remedy);
        lua_pop(L, 3);
    } else {
        const char *msg = lua_tostring(L, -1);
        tl_fail(e, TL_SCRIPT, "%s", msg ? msg : "unknown script error");
        lua_pop(L, 1);
    }
    return TL_SCRIPT;
}

tl_status script_call(tl_script *s, int n_args, int n_results, tl_err *e) {
    lua_State *L = s->L;
    int base = lua_gettop(L) - n_args;
    lua_pushcfunction(L, on_error);
    lua_insert(L, base);
    s->steps = 0;
    lua_sethook(L, count_hook, LUA_MASKCOUNT, STEP);
    s->running = true;
    int rc = lua_pcall(L, n_args, n_results, base);
    s->running = false;
    lua_sethook(L, NULL, 0, 0);
    lua_remove(L, base);
    return rc == LUA_OK ? TL_OK : report(s, e);
}

tl_status script_compile(tl_script *s, const char *text, size_t len, const char *chunk, tl_err *e) {
    if (luaL_loadbufferx(s->L, text, len, chunk, "t") != LUA_OK) return report(s, e);
    return TL_OK;
}

/* ---- require ------------------------------------------------------------------------------------------------- */

static bool plain_module_name(const char *name) {
    if (name[0] == 0 || strlen(name) > 100) return false;
    for (const char *p = name; *p; p++) {
        bool word = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '_';
        if (!word && !(*p == '.' && p > name && p[1] != '.' && p[1] != 0)) return false;
    }
    return true;
}

/* Text of module `name` from: the script's folder, lua_dir, the embedded library. NULL when nowhere. */
static char *module_text(const tl_script *s, const char *name, char *chunk, size_t chunk_size) {
    char file[128];
    snprintf(file, sizeof file, "%s", name);
    for (char *p = file; *p; p++)
        if (*p == '.') *p = '/';
    const char *const folders[] = {s->lua_dir, s->folder};
    tl_buf b;
    for (size_t i = 0; i < TL_COUNT(folders); i++) {
        if (folders[i] == NULL) continue;
        char *path = tl_xprintf("%s/%s.lua", folders[i], file);
        tl_buf_init(&b, 0);
        tl_status st = tl_file_read(&b, path, 4 << 20, NULL);
        snprintf(chunk, chunk_size, "@%s", path);
        free(path);
        if (st == TL_OK) return tl_buf_take(&b);
        tl_buf_free(&b);
    }
    char want[140];
    snprintf(want, sizeof want, "%s.lua", file);
    for (size_t i = 0; i < tl_embedded_count; i++)
        if (strcmp(tl_embedded_files[i].name, want) == 0) {
            snprintf(chunk, chunk_size, "@lua/%s", want);
            return tl_xstrndup(tl_embedded_files[i].text, tl_embedded_files[i].len);
        }
    return NULL;
}

static int require(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, name) != LUA_TNIL) return 1;
    lua_pop(L, 1);
    if (!plain_module_name(name))
        return luaL_error(L, "require '%s': a module name is lower-case words joined by dots", name);
    char chunk[1024];
    char *text = module_text(script_of(L), name, chunk, sizeof chunk);
    if (text == NULL)
        return luaL_error(L, "require '%s': no such module in tally's lua/ or beside the script", name);
    int rc = luaL_loadbufferx(L, text, strlen(text), chunk, "t");
    free(text);
    if (rc != LUA_OK) return lua_error(L);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushboolean(L, 1);
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, name);
    return 1;
}

/* ---- globals -------------------------------------------------------------------------------------------------- */

static int forbidden(lua_State *L) {
    const char *key = lua_tostring(L, 2);
    if (key == NULL) return 0;
    static const char *const closed[] = {"os",   "io",       "load",           "loadfile", "dofile", "loadstring",
                                         "debug", "package", "collectgarbage"};
    for (size_t i = 0; i < TL_COUNT(closed); i++)
        if (strcmp(key, closed[i]) == 0)
            return luaL_error(L, "'%s' is not available to scripts: what a script learns of the machine comes "
                                 "through its arguments, so that it is recorded", key);
    return luaL_error(L, "undefined global '%s' (a spelling mistake, or a missing `local x = require ...`?)", key);
}

static int stray_global(lua_State *L) {
    return luaL_error(L, "assignment to the undefined global '%s': say `local`", lua_tostring(L, 2));
}

static int print(lua_State *L) {
    tl_buf b;
    tl_buf_init(&b, 1 << 16);
    for (int i = 1; i <= lua_gettop(L); i++) {
        size_t n;
        const char *t = luaL_tolstring(L, i, &n);
        if (i > 1) tl_buf_char(&b, ' ');
        tl_buf_add(&b, t, n);
        lua_pop(L, 1);
    }
    tl_log(TL_LOG_INFO, "%s", b.p);
    tl_buf_free(&b);
    return 0;
}

static void open_globals(lua_State *L) {
    static const luaL_Reg libs[] = {{LUA_GNAME, luaopen_base},
                                    {LUA_STRLIBNAME, luaopen_string},
                                    {LUA_TABLIBNAME, luaopen_table},
                                    {LUA_MATHLIBNAME, luaopen_math},
                                    {LUA_UTF8LIBNAME, luaopen_utf8}};
    for (size_t i = 0; i < TL_COUNT(libs); i++) {
        luaL_requiref(L, libs[i].name, libs[i].func, 1);
        lua_pop(L, 1);
    }
    static const char *const closed[] = {"dofile", "loadfile", "load", "collectgarbage"};
    for (size_t i = 0; i < TL_COUNT(closed); i++) {
        lua_pushnil(L);
        lua_setglobal(L, closed[i]);
    }
    /* no hidden randomness: math.random would be seeded by the clock */
    lua_getglobal(L, "math");
    lua_pushnil(L);
    lua_setfield(L, -2, "random");
    lua_pushnil(L);
    lua_setfield(L, -2, "randomseed");
    lua_pop(L, 1);
    lua_pushcfunction(L, print);
    lua_setglobal(L, "print");
    lua_pushcfunction(L, require);
    lua_setglobal(L, "require");
    lua_pushglobaltable(L);
    lua_createtable(L, 0, 3);
    lua_pushcfunction(L, forbidden);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, stray_global);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

static int open_all(lua_State *L) {
    script_open_value(L);
    open_globals(L);
    return 0;
}

tl_status tl_script_new(tl_script **out, const tl_script_options *opt, tl_err *e) {
    tl_script *s = tl_xalloc(sizeof *s);
    *out = NULL;
    s->max_steps = opt && opt->max_instructions ? opt->max_instructions : 200000000;
    s->max_memory = opt && opt->max_memory ? opt->max_memory : (size_t)512 << 20;
    s->lua_dir = tl_xstrdup(opt ? opt->lua_dir : NULL);
    s->object = LUA_NOREF;
    s->values = tl_values_new();
    s->L = lua_newstate(allocate, s);
    if (s->L == NULL) {
        tl_script_free(s);
        return tl_fail(e, TL_LIMIT, "no memory for a Lua state");
    }
    lua_pushlightuserdata(s->L, s);
    lua_rawsetp(s->L, LUA_REGISTRYINDEX, &self_key);
    lua_pushcfunction(s->L, open_all);
    tl_status st = script_call(s, 0, 0, e);
    if (st != TL_OK) {
        tl_script_free(s);
        return st;
    }
    *out = s;
    return TL_OK;
}

void tl_script_free(tl_script *s) {
    if (s == NULL) return;
    if (s->L != NULL) lua_close(s->L);
    tl_values_free(s->values);
    free(s->lua_dir);
    free(s->folder);
    free(s);
}
