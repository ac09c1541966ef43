/* tl.Value userdata, and the module "tally_core" that the Lua library is written on: making values, arithmetic, units,
 * near names, the running script's text. Values live in the script's graph; userdata holds a pointer and needs no __gc. */
#include "plan/plan.h"
#include "script/script_impl.h"

#include <math.h>

#define META "tl.Value"

void script_push_value(lua_State *L, tl_value *v) {
    tl_value **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = v;
    luaL_setmetatable(L, META);
}

tl_value *script_test_value(lua_State *L, int index) {
    tl_value **box = luaL_testudata(L, index, META);
    return box ? *box : NULL;
}

static tl_value *check_value(lua_State *L, int index) {
    tl_value *v = script_test_value(L, index);
    if (v == NULL) luaL_typeerror(L, index, "value (number with unit, label and source)");
    return v;
}

/* Raises e's message with its remedy; does not return. */
static int raise(lua_State *L, const tl_err *e) {
    luaL_where(L, 1);
    lua_pushfstring(L, "%s%s%s", e->msg, e->remedy[0] ? "; " : "", e->remedy);
    lua_concat(L, 2);
    return lua_error(L);
}

static int arithmetic(lua_State *L, tl_value_op op) {
    tl_values *g = script_of(L)->values;
    tl_err e = {0};
    tl_value *out = NULL, *a = script_test_value(L, 1), *b = script_test_value(L, 2);
    tl_status st;
    if (a != NULL && b != NULL) st = tl_value_calc(&out, g, op, a, b, &e);
    else if (a != NULL) st = tl_value_calc_number(&out, g, op, a, luaL_checknumber(L, 2), false, &e);
    else st = tl_value_calc_number(&out, g, op, check_value(L, 2), luaL_checknumber(L, 1), true, &e);
    if (st != TL_OK) return raise(L, &e);
    script_push_value(L, out);
    return 1;
}

static int value_add(lua_State *L) { return arithmetic(L, TL_ADD); }
static int value_sub(lua_State *L) { return arithmetic(L, TL_SUB); }
static int value_mul(lua_State *L) { return arithmetic(L, TL_MUL); }
static int value_div(lua_State *L) { return arithmetic(L, TL_DIV); }
static int value_min(lua_State *L) { return arithmetic(L, TL_MIN); }
static int value_max(lua_State *L) { return arithmetic(L, TL_MAX); }

static int value_pow(lua_State *L) {
    tl_err e = {0};
    tl_value *out = NULL;
    lua_Integer k = luaL_checkinteger(L, 2);
    if (tl_value_pow(&out, script_of(L)->values, check_value(L, 1), (int)k, &e) != TL_OK) return raise(L, &e);
    script_push_value(L, out);
    return 1;
}

static int compare(lua_State *L) {
    tl_err e = {0};
    int c = 0;
    if (tl_value_compare(&c, check_value(L, 1), check_value(L, 2), &e) != TL_OK) raise(L, &e);
    return c;
}

static int value_lt(lua_State *L) { return lua_pushboolean(L, compare(L) < 0), 1; }
static int value_le(lua_State *L) { return lua_pushboolean(L, compare(L) <= 0), 1; }
static int value_eq(lua_State *L) { return lua_pushboolean(L, compare(L) == 0), 1; }

static int value_tostring(lua_State *L) {
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_value_text(&b, check_value(L, 1), TL_LANG_EN);
    lua_pushlstring(L, b.p, b.len); /* a memory error here ends the script and the run: the buffer's leak is moot */
    tl_buf_free(&b);
    return 1;
}

static int value_index(lua_State *L) {
    tl_value *v = check_value(L, 1);
    const char *key = luaL_checkstring(L, 2);
    char unit[TL_UNIT_TEXT];
    if (strcmp(key, "number") == 0) isfinite(v->number) ? lua_pushnumber(L, v->number) : lua_pushnil(L);
    else if (strcmp(key, "lo") == 0) isfinite(v->lo) ? lua_pushnumber(L, v->lo) : lua_pushnil(L);
    else if (strcmp(key, "hi") == 0) isfinite(v->hi) ? lua_pushnumber(L, v->hi) : lua_pushnil(L);
    else if (strcmp(key, "label") == 0) lua_pushstring(L, tl_label_name(v->label));
    else if (strcmp(key, "name") == 0) lua_pushstring(L, v->name);
    else if (strcmp(key, "unit") == 0) {
        tl_unit_print(unit, &v->unit);
        lua_pushstring(L, unit);
    } else
        return luaL_error(L, "a value has number, lo, hi, unit, label and name, not '%s'", key);
    return 1;
}

/* ---- tally_core ------------------------------------------------------------------------------------------------- */

/* value(number, unit, label, source, name) */
static int core_value(lua_State *L) {
    tl_value_leaf leaf = {.number = luaL_checknumber(L, 1), .unit = luaL_checkstring(L, 2), .name = luaL_optstring(L, 5, "")};
    tl_err e = {0};
    tl_value *out = NULL;
    luaL_checktype(L, 4, LUA_TTABLE);
    if (tl_label_parse(&leaf.label, luaL_checkstring(L, 3), &e) != TL_OK) return raise(L, &e);
    json_t *source = script_to_json(L, 4);
    leaf.source = source;
    tl_status st = tl_value_new(&out, script_of(L)->values, &leaf, &e);
    json_decref(source);
    if (st != TL_OK) return raise(L, &e);
    script_push_value(L, out);
    return 1;
}

enum { INPUTS_MAX = 32 };

/* Inputs in order of their names; plain numbers among them are constants and go into the note. */
static size_t read_inputs(lua_State *L, int index, tl_value_input in[INPUTS_MAX], char *constants, size_t room) {
    size_t n = 0;
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
        const char *role = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        if (role == NULL) luaL_error(L, "inputs must be named: inputs = { bandwidth = … }");
        tl_value *v = script_test_value(L, -1);
        if (v != NULL) {
            if (n == INPUTS_MAX) luaL_error(L, "a formula has more than %d inputs", INPUTS_MAX);
            in[n++] = (tl_value_input){role, v};
        } else if (lua_isnumber(L, -1)) {
            size_t have = strlen(constants);
            char num[32];
            tl_fmt_f64(num, lua_tonumber(L, -1));
            snprintf(constants + have, room - have, "%s%s = %s", have ? ", " : "", role, num);
        } else
            luaL_error(L, "input '%s' must be a value or a plain number", role);
        lua_pop(L, 1);
    }
    for (size_t i = 1; i < n; i++) /* insertion sort: a handful */
        for (size_t k = i; k > 0 && strcmp(in[k - 1].role, in[k].role) > 0; k--) {
            tl_value_input t = in[k];
            in[k] = in[k - 1];
            in[k - 1] = t;
        }
    return n;
}

/* derive { name, formula, inputs, result, note, reference } */
static int core_derive(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    tl_value_input in[INPUTS_MAX];
    char constants[256] = "";
    lua_getfield(L, 1, "name");
    lua_getfield(L, 1, "formula");
    lua_getfield(L, 1, "result");
    lua_getfield(L, 1, "inputs");
    luaL_checktype(L, -1, LUA_TTABLE);
    tl_value_derivation d = {.name = luaL_checkstring(L, 2), .formula = luaL_checkstring(L, 3), .inputs = in};
    d.result = check_value(L, 4);
    d.inputs_n = read_inputs(L, lua_gettop(L), in, constants, sizeof constants);
    lua_newtable(L);
    static const char *const kept[] = {"note", "reference"};
    for (size_t i = 0; i < TL_COUNT(kept); i++) {
        lua_getfield(L, 1, kept[i]);
        lua_setfield(L, -2, kept[i]);
    }
    if (constants[0]) {
        lua_pushstring(L, constants);
        lua_setfield(L, -2, "constants");
    }
    json_t *extra = script_to_json(L, -1);
    tl_err e = {0};
    tl_value *out = NULL;
    d.extra = extra;
    tl_status st = tl_value_derive(&out, script_of(L)->values, &d, &e);
    json_decref(extra);
    if (st != TL_OK) return raise(L, &e);
    script_push_value(L, out);
    return 1;
}

static int core_interval(lua_State *L) {
    tl_err e = {0};
    tl_value *out = NULL;
    if (tl_value_interval(&out, script_of(L)->values, check_value(L, 1), luaL_checknumber(L, 2), luaL_checknumber(L, 3),
                          &e) != TL_OK)
        return raise(L, &e);
    script_push_value(L, out);
    return 1;
}

static int core_convert(lua_State *L) {
    tl_err e = {0};
    tl_value *out = NULL;
    if (tl_value_convert(&out, script_of(L)->values, check_value(L, 1), luaL_checkstring(L, 2), &e) != TL_OK)
        return raise(L, &e);
    script_push_value(L, out);
    return 1;
}

static int core_is_value(lua_State *L) {
    lua_pushboolean(L, script_test_value(L, 1) != NULL);
    return 1;
}

static int core_nearest(lua_State *L) {
    const char *names[256];
    size_t n = 0;
    luaL_checktype(L, 2, LUA_TTABLE);
    for (lua_Integer i = 1; n < TL_COUNT(names) && lua_rawgeti(L, 2, i) == LUA_TSTRING; i++) names[n++] = lua_tostring(L, -1);
    const char *near = n ? tl_nearest(luaL_checkstring(L, 1), names, n) : NULL;
    near ? (void)lua_pushstring(L, near) : lua_pushnil(L);
    return 1;
}

/* tally_core.plan_fields(prefix): {name = {type=, required=, help=, min=, max=, one_of={...}, fields={...}}} of the plan's
 * fields below prefix ("" or "workload."), in the form that lua/schema.lua checks by. So a rule stands once: in plan. */
static const char *schema_type(const tl_plan_field *f) {
    static const char *const types[][2] = {{"string", "string|axis"}, {"integer", "integer|axis"},
                                           {"number", "number|axis"}, {"boolean", "boolean|axis"},
                                           {"list", "list"}, {"table", "table"}, {"table", "table"},
                                           {"integer|string", "integer|string|axis"}};
    return types[f->type][f->axis];
}

static void push_words(lua_State *L, const char *words) {
    lua_newtable(L);
    for (lua_Integer i = 1; *words; i++) {
        size_t n = strcspn(words, " ");
        lua_pushlstring(L, words, n);
        lua_rawseti(L, -2, i);
        words += n + strspn(words + n, " ");
    }
}

static void push_fields(lua_State *L, const char *prefix);

static void push_field(lua_State *L, const tl_plan_field *f) {
    char below[160];
    lua_newtable(L);
    lua_pushstring(L, schema_type(f));
    lua_setfield(L, -2, "type");
    lua_pushstring(L, f->help);
    lua_setfield(L, -2, "help");
    lua_pushboolean(L, f->required);
    lua_setfield(L, -2, "required");
    if (f->min <= f->max) {
        lua_pushnumber(L, f->min);
        lua_setfield(L, -2, "min");
        lua_pushnumber(L, f->max);
        lua_setfield(L, -2, "max");
    }
    if (f->one_of != NULL) {
        push_words(L, f->one_of);
        lua_setfield(L, -2, "one_of");
    }
    if (f->type == TL_PLAN_OBJECT) {
        snprintf(below, sizeof below, "%s.", f->path);
        push_fields(L, below);
        lua_setfield(L, -2, "fields");
    }
}

static void push_fields(lua_State *L, const char *prefix) {
    size_t n, k = strlen(prefix);
    const tl_plan_field *f = tl_plan_fields(&n);
    lua_newtable(L);
    for (size_t i = 0; i < n; i++) {
        if (!tl_str_starts(f[i].path, prefix) || strpbrk(f[i].path + k, ".[") != NULL) continue;
        push_field(L, &f[i]);
        lua_setfield(L, -2, f[i].path + k);
    }
}

static int core_plan_fields(lua_State *L) {
    push_fields(L, luaL_checkstring(L, 1));
    return 1;
}

/* tally_core.source_name and .source_text change with each loaded script: read through the registry. */
static int core_index(lua_State *L) {
    const char *key = luaL_checkstring(L, 2);
    if (strcmp(key, "source_name") == 0) lua_getfield(L, LUA_REGISTRYINDEX, "tl.source_name");
    else if (strcmp(key, "source_text") == 0) lua_getfield(L, LUA_REGISTRYINDEX, "tl.source_text");
    else lua_pushnil(L);
    return 1;
}

void script_open_value(lua_State *L) {
    static const luaL_Reg meta[] = {{"__add", value_add}, {"__sub", value_sub}, {"__mul", value_mul}, {"__div", value_div},
                                    {"__pow", value_pow}, {"__lt", value_lt}, {"__le", value_le}, {"__eq", value_eq},
                                    {"__tostring", value_tostring}, {"__index", value_index}, {NULL, NULL}};
    static const luaL_Reg core[] = {{"value", core_value}, {"derive", core_derive}, {"interval", core_interval},
                                    {"convert", core_convert}, {"is_value", core_is_value}, {"nearest", core_nearest},
                                    {"plan_fields", core_plan_fields},
                                    {"min", value_min}, {"max", value_max}, {NULL, NULL}};
    luaL_newmetatable(L, META);
    luaL_setfuncs(L, meta, 0);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    luaL_newlib(L, core);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, core_index);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "tally_core");
    lua_pop(L, 2);
}
