/* JSON <-> Lua. Arrays are tables 1..n; an empty Lua table becomes an object unless it came from a JSON array (kept by a
 * metatable). Values (number + unit + label + source) cross as userdata. Integers stay integers. */
#include "script/script_impl.h"

#include <math.h>

#define ARRAY_META "tl.array"
enum { MAX_DEPTH = 64 };

static bool is_value(const json_t *j) {
    return json_object_get(j, "unit") != NULL && json_object_get(j, "label") != NULL &&
           json_object_get(j, "source") != NULL;
}

static void push_array(lua_State *L, const json_t *j) {
    size_t n = json_array_size(j);
    lua_createtable(L, (int)n, 0);
    if (luaL_newmetatable(L, ARRAY_META)) lua_pushboolean(L, 0), lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    for (size_t i = 0; i < n; i++) {
        script_push_json(L, json_array_get(j, i));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push_object(lua_State *L, const json_t *j) {
    const char *key;
    json_t *v;
    if (is_value(j)) {
        tl_err e = {0};
        tl_value *value = NULL;
        if (tl_value_from_json(&value, script_of(L)->values, j, &e) != TL_OK) luaL_error(L, "%s", e.msg);
        script_push_value(L, value);
        return;
    }
    lua_createtable(L, 0, (int)json_object_size(j));
    json_object_foreach((json_t *)j, key, v) {
        script_push_json(L, v);
        lua_setfield(L, -2, key);
    }
}

void script_push_json(lua_State *L, const json_t *j) {
    luaL_checkstack(L, 8, "JSON nested too deeply");
    if (j == NULL) {
        lua_pushnil(L);
        return;
    }
    switch (json_typeof(j)) {
    case JSON_OBJECT: push_object(L, j); break;
    case JSON_ARRAY: push_array(L, j); break;
    case JSON_STRING: lua_pushlstring(L, json_string_value(j), json_string_length(j)); break;
    case JSON_INTEGER: lua_pushinteger(L, json_integer_value(j)); break;
    case JSON_REAL: lua_pushnumber(L, json_real_value(j)); break;
    case JSON_TRUE: lua_pushboolean(L, 1); break;
    case JSON_FALSE: lua_pushboolean(L, 0); break;
    case JSON_NULL: lua_pushnil(L); break;
    }
}

/* A half-built JSON tree must not leak when Lua raises an error, so conversion never raises: the first problem is kept
 * here and raised by script_to_json after the tree is released. */
typedef struct conversion {
    char problem[200];
} conversion;

static json_t *convert(lua_State *L, int index, int depth, conversion *c);

static void complain(conversion *c, const char *what) {
    if (c->problem[0] == 0) snprintf(c->problem, sizeof c->problem, "%s", what);
}

static bool has_array_mark(lua_State *L, int index) {
    if (!lua_getmetatable(L, index)) return false;
    luaL_getmetatable(L, ARRAY_META);
    bool same = lua_rawequal(L, -1, -2) == 1;
    lua_pop(L, 2);
    return same;
}

static json_t *convert_array(lua_State *L, int index, lua_Integer n, int depth, conversion *c) {
    json_t *out = json_array();
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, index, i);
        json_array_append_new(out, convert(L, lua_gettop(L), depth + 1, c));
        lua_pop(L, 1);
    }
    return out;
}

static json_t *convert_object(lua_State *L, int index, int depth, conversion *c) {
    json_t *out = json_object();
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            complain(c, "a table with both a list part and named fields (or with keys that are not text) has no data form");
            lua_pop(L, 1);
            continue;
        }
        if (!lua_isfunction(L, -1))
            json_object_set_new(out, lua_tostring(L, -2), convert(L, lua_gettop(L), depth + 1, c));
        lua_pop(L, 1);
    }
    return out;
}

static json_t *convert_table(lua_State *L, int index, int depth, conversion *c) {
    if (depth > MAX_DEPTH || !lua_checkstack(L, 8)) {
        complain(c, "a table nested too deeply, or one that holds itself, has no data form");
        return json_null();
    }
    lua_Integer n = (lua_Integer)lua_rawlen(L, index), keys = 0;
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        keys++;
        lua_pop(L, 1);
    }
    if ((n > 0 && keys == n) || (keys == 0 && has_array_mark(L, index))) return convert_array(L, index, n, depth, c);
    return convert_object(L, index, depth, c);
}

static json_t *convert(lua_State *L, int index, int depth, conversion *c) {
    size_t n;
    const char *text;
    switch (lua_type(L, index)) {
    case LUA_TNIL: return json_null();
    case LUA_TBOOLEAN: return json_boolean(lua_toboolean(L, index));
    case LUA_TNUMBER:
        if (lua_isinteger(L, index)) return json_integer(lua_tointeger(L, index));
        if (!isfinite(lua_tonumber(L, index))) complain(c, "a number is not finite (division by zero?)");
        return tl_json_real(lua_tonumber(L, index));
    case LUA_TSTRING: {
        text = lua_tolstring(L, index, &n);
        json_t *j = json_stringn(text, n);
        if (j == NULL) complain(c, "a text is not valid UTF-8");
        return j ? j : json_null();
    }
    case LUA_TTABLE: return convert_table(L, index, depth, c);
    case LUA_TUSERDATA: {
        tl_value *v = script_test_value(L, index);
        if (v != NULL) return tl_value_to_json(v);
        complain(c, "an unknown userdata has no data form");
        return json_null();
    }
    default: complain(c, "a function or thread has no data form"); return json_null();
    }
}

json_t *script_to_json(lua_State *L, int index) {
    conversion c = {{0}};
    json_t *j = convert(L, lua_absindex(L, index), 0, &c);
    if (c.problem[0] != 0) {
        json_decref(j);
        luaL_error(L, "%s", c.problem);
    }
    return j;
}
