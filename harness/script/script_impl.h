/* Private to script: the state and the parts its files share. */
#ifndef TL_SCRIPT_IMPL_H
#define TL_SCRIPT_IMPL_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "script/script.h"
#include "value/value.h"

struct tl_script {
    lua_State *L;
    char *lua_dir;
    char *folder; /* of the loaded script: `require` may read it */
    uint64_t max_steps, steps;
    size_t max_memory, memory;
    bool running; /* limits hold inside script_call only: outside it a Lua error would end the process */
    tl_values *values; /* every value a script makes lives as long as the state */
    int object;        /* registry reference of the loaded object, or LUA_NOREF */
};

struct tl_embedded {
    const char *name;
    const char *text;
    size_t len;
};
extern const struct tl_embedded tl_embedded_files[];
extern const size_t tl_embedded_count;

tl_script *script_of(lua_State *L);
/* The one protected call: function and n arguments are on the stack; leaves n_results or nothing. */
tl_status script_call(tl_script *s, int n_args, int n_results, tl_err *e);
/* Compiles text only (no bytecode) and leaves the function on the stack. */
tl_status script_compile(tl_script *s, const char *text, size_t len, const char *chunk, tl_err *e);

/* convert.c. push may raise a Lua error (memory), so it runs inside script_call. */
void script_push_json(lua_State *L, const json_t *j);
/* New reference; raises a Lua error for what has no JSON form (NaN, cycles, mixed tables). Functions are left out. */
json_t *script_to_json(lua_State *L, int index);

/* bind_value.c */
void script_open_value(lua_State *L);
void script_push_value(lua_State *L, tl_value *v);
tl_value *script_test_value(lua_State *L, int index); /* NULL when it is none */

#endif
