/* What the executable is: where it lies, what it says it is, which flags it knows, and one digest over it and the
 * libraries that make up the engine. A wrapper script alone would give the same digest for every build behind it. */
#include <unistd.h>

#include "engine/engine_impl.h"

#define SAY_TIMEOUT (20 * TL_S)

extern char **environ;

const char *tl_engine_name_of(const json_t *adapter) {
    return tl_json_str(adapter, "name", "?");
}

const char **tl_engine_strings(const json_t *array) {
    size_t n = json_array_size(array), k = 0;
    const char **v = tl_xalloc((n + 1) * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        const char *s = json_string_value(json_array_get(array, i));
        if (s) v[k++] = s;
    }
    return v;
}

static char *find_named(const json_t *adapter) {
    const char **names = tl_engine_strings(json_object_get(adapter, "binaries"));
    char *found = NULL;
    for (size_t i = 0; names[i] && !found; i++) found = tl_path_which(names[i]);
    const char *sub = tl_json_str(adapter, "cache_bin", NULL);
    if (!found && sub) {
        char *cache = tl_path_cache();
        char *dir = tl_path_join(cache, sub);
        for (size_t i = 0; names[i] && !found; i++) {
            char *path = tl_path_join(dir, names[i]);
            found = tl_path_which(path);
            free(path);
        }
        free(dir);
        free(cache);
    }
    free(names);
    return found;
}

tl_status tl_engine_find(char **path_out, const json_t *adapter, const char *binary, tl_err *e) {
    char *found = binary ? tl_path_which(binary) : find_named(adapter);
    if (found) {
        *path_out = tl_path_abs(found);
        free(found);
        return TL_OK;
    }
    *path_out = NULL;
    if (binary && strchr(binary, '/') && tl_file_exists(binary))
        return tl_fail(e, TL_MISSING, "engine '%s': %s is not an executable file", tl_engine_name_of(adapter), binary);
    const char *name = json_string_value(json_array_get(json_object_get(adapter, "binaries"), 0));
    (void)tl_fail(e, TL_MISSING, "engine '%s': no %s%s", tl_engine_name_of(adapter), binary ? binary : name ? name : "executable",
                  binary ? "" : " on PATH or in tally's cache folder");
    return tl_remedy(e, "%s", tl_json_str(adapter, "missing", "install the engine"));
}

/* Runs the executable with the adapter's words and gives both streams as one text. */
static tl_status ask(char **text_out, const json_t *adapter, const char *path, const char *what, tl_err *e) {
    tl_status st = TL_OK;
    tl_child_result r = {0};
    tl_buf line;
    tl_buf_init(&line, 0);
    char *key = tl_xprintf("%s.args", what);
    const char **words = tl_engine_strings(tl_json_at(adapter, key));
    const char **argv = NULL;
    free(key);
    *text_out = NULL;
    if (!words[0]) goto out; /* the adapter has no such question */
    size_t n = 0;
    while (words[n]) n++;
    argv = tl_xalloc((n + 2) * sizeof *argv);
    argv[0] = path;
    memcpy(argv + 1, words, n * sizeof *argv);
    const tl_child_spec spec = {.argv = argv, .out = {.to = TL_TO_CAPTURE}, .err = {.to = TL_TO_CAPTURE}};
    TRY(tl_child_run(&r, &spec, SAY_TIMEOUT, e));
    tl_buf_add(&r.out, r.err.p, r.err.len);
    if (r.timed_out || r.exit_code != 0) {
        tl_engine_last_line(&line, adapter, r.out.p);
        st = r.timed_out ? tl_fail(e, TL_TIMEOUT, "%s %s did not answer within 20 s", path, argv[1])
                         : tl_fail(e, TL_ENGINE, "%s %s failed with exit code %d: \"%s\"", path, argv[1], r.exit_code, line.p);
        st = tl_remedy(e, "%s", tl_json_str(adapter, "missing", "use another build"));
        goto out;
    }
    *text_out = tl_buf_take(&r.out);
out:
    tl_buf_free(&line);
    tl_child_result_free(&r);
    free(argv);
    free(words);
    return st;
}

tl_status tl_engine_version(char **text_out, const json_t *adapter, const char *path, tl_err *e) {
    char *text = NULL;
    char *got[1] = {NULL};
    tl_status st = ask(&text, adapter, path, "version", e);
    *text_out = NULL;
    if (st != TL_OK) return st;
    const char *pattern = tl_json_str(adapter, "version.pattern", NULL);
    if (text && pattern && tl_engine_match(got, 1, text, pattern, false)) {
        *text_out = got[0];
    } else {
        tl_buf line;
        tl_buf_init(&line, 0);
        tl_engine_last_line(&line, adapter, text ? text : "");
        *text_out = tl_buf_take(&line);
        free(got[0]);
    }
    free(text);
    return TL_OK;
}

/* ---- digest ---- */

static void add_part(json_t *files, tl_sha256 *all, const char *name, const char *path) {
    char hex[65];
    tl_file_facts f;
    if (tl_file_stat(&f, path, NULL) != TL_OK || !f.is_file || tl_file_sha256(hex, path, NULL, NULL, NULL) != TL_OK) return;
    char *line = tl_xprintf("%s  %s\n", hex, name);
    tl_sha256_add(all, line, strlen(line));
    free(line);
    json_array_append_new(files, json_pack("{s:s, s:I, s:s}", "name", name, "bytes", (json_int_t)f.size_bytes, "sha256", hex));
}

/* A list of relative paths, one a line, left by whoever unpacked the engine. */
static bool parts_by_manifest(json_t *files, tl_sha256 *all, const tl_engine *g, const char *dir) {
    const char *name = tl_json_str(g->adapter, "parts.manifest", NULL);
    if (!name) return false;
    char *path = tl_path_join(dir, name), *root = tl_path_join(dir, tl_json_str(g->adapter, "parts.root", "."));
    char *exe_dir = tl_path_join(dir, tl_json_str(g->adapter, "parts.executable", "."));
    char *exe = tl_path_join(exe_dir, tl_path_base(g->binary));
    tl_buf text;
    tl_buf_init(&text, 0);
    bool found = tl_file_exists(path) && tl_file_read(&text, path, 1 << 20, NULL) == TL_OK && text.len > 0;
    if (found) add_part(files, all, tl_path_base(exe), exe);
    for (char *line = text.p, *end; found && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = '\0';
        char *part = tl_path_join(root, line);
        add_part(files, all, line, part);
        free(part);
    }
    tl_buf_free(&text);
    free(exe);
    free(exe_dir);
    free(root);
    free(path);
    return found;
}

static bool wanted(const char *name, const char *const *prefixes) {
    if (!strstr(name, ".so") && !strstr(name, ".dylib")) return false;
    for (size_t i = 0; prefixes[i]; i++)
        if (tl_str_starts(name, prefixes[i])) return true;
    return false;
}

static void parts_by_name(json_t *files, tl_sha256 *all, const tl_engine *g, const char *dir) {
    const char **dirs = tl_engine_strings(tl_json_at(g->adapter, "parts.dirs"));
    const char **prefixes = tl_engine_strings(tl_json_at(g->adapter, "parts.prefixes"));
    for (size_t i = 0; dirs[i]; i++) {
        tl_names names = {0};
        char *sub = tl_path_join(dir, dirs[i]);
        if (tl_dir_exists(sub) && tl_dir_list(&names, sub, NULL) == TL_OK) {
            for (size_t k = 0; k < names.n; k++) {
                if (!wanted(names.v[k], prefixes)) continue;
                char *path = tl_path_join(sub, names.v[k]);
                add_part(files, all, names.v[k], path);
                free(path);
            }
        }
        tl_names_free(&names);
        free(sub);
    }
    free(prefixes);
    free(dirs);
}

static json_t *digest(const tl_engine *g) {
    char *real = realpath(g->binary, NULL);
    char *dir = tl_path_dir(real ? real : g->binary);
    json_t *files = json_array();
    tl_sha256 *all = tl_sha256_new();
    add_part(files, all, tl_path_base(g->binary), g->binary);
    if (!parts_by_manifest(files, all, g, dir)) parts_by_name(files, all, g, dir);
    uint8_t sum[32];
    char hex[65];
    tl_sha256_end(all, sum);
    tl_hex(hex, sum, sizeof sum);
    free(dir);
    free(real);
    return json_pack("{s:s, s:s, s:o}", "path", g->binary, "sha256", hex, "files", files);
}

static json_t *packages(const tl_engine *g) {
    const char *name = tl_json_str(g->adapter, "parts.packages", NULL);
    char *real = realpath(g->binary, NULL);
    char *dir = tl_path_dir(real ? real : g->binary);
    char *path = name ? tl_path_join(dir, name) : NULL;
    json_t *list = NULL;
    tl_buf text;
    tl_buf_init(&text, 0);
    if (path && tl_file_exists(path) && tl_file_read(&text, path, 1 << 20, NULL) == TL_OK && tl_utf8_valid(text.p, text.len)) {
        list = json_array();
        for (char *line = text.p, *end; *line; line = end) {
            end = line + strcspn(line, "\n");
            if (*end) *end++ = '\0';
            if (*line) json_array_append_new(list, json_string(line));
        }
    }
    tl_buf_free(&text);
    free(path);
    free(dir);
    free(real);
    return list ? list : json_null();
}

/* Variables that change what the engine does. Values of keys and the like stay out of the record. */
static json_t *environment(const tl_engine *g) {
    static const char *const secret[] = {"KEY", "TOKEN", "SECRET", "PASSW"};
    const char **prefixes = tl_engine_strings(json_object_get(g->adapter, "env"));
    json_t *env = json_object();
    for (char **v = environ; v && *v; v++) {
        const char *eq = strchr(*v, '=');
        bool is_wanted = false, hide = false;
        for (size_t i = 0; eq && prefixes[i]; i++) is_wanted = is_wanted || tl_str_starts(*v, prefixes[i]);
        if (!is_wanted) continue;
        char *name = tl_xstrndup(*v, (size_t)(eq - *v));
        for (size_t i = 0; i < TL_COUNT(secret); i++) hide = hide || strstr(name, secret[i]);
        hide = hide || !tl_utf8_valid(eq + 1, strlen(eq + 1));
        if (tl_utf8_valid(name, strlen(name))) json_object_set_new(env, name, json_string(hide ? "(hidden)" : eq + 1));
        free(name);
    }
    free(prefixes);
    return env;
}

tl_status tl_engine_identify(tl_engine *g, tl_err *e) {
    tl_status st = TL_OK;
    char *text = NULL;
    char *compiler[1] = {NULL};
    char *version = NULL;
    TRY(tl_engine_version(&version, g->adapter, g->binary, e));
    TRY(ask(&text, g->adapter, g->binary, "version", e));
    const char *pattern = tl_json_str(g->adapter, "version.compiler", NULL);
    if (text && pattern) (void)tl_engine_match(compiler, 1, text, pattern, false);
    json_object_set_new(g->facts, "version",
                        json_pack("{s:s, s:s?, s:s?}", "text", version, "compiler", compiler[0], "output", text));
    TRY(ask(&g->help, g->adapter, g->binary, "help", e));
    json_object_set_new(g->facts, "binary", digest(g));
    json_object_set_new(g->facts, "packages", packages(g));
    json_object_set_new(g->facts, "env", environment(g));
out:
    free(version);
    free(compiler[0]);
    free(text);
    return st;
}
