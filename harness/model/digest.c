/* SHA-256 of a model file, remembered. What is remembered is used only while path, size, mtime, inode and device are
 * all the same. A file that changed within the last moment is not remembered: a second write inside the clock tick of
 * the file system would look the same. A damaged memory file is replaced, never an error. */
#include "model_impl.h"

enum { MEMORY_MAX = 4 << 20, ENTRIES_MAX = 2000 };
#define SETTLED_NS 100000000 /* longer than any file system's tick */

static json_t *memory_load(const char *path) {
    tl_buf b;
    json_t *j = NULL;
    tl_buf_init(&b, 0);
    if (tl_file_read(&b, path, MEMORY_MAX, NULL) != TL_OK || tl_json_parse(&j, b.p, b.len, path, NULL) != TL_OK) j = NULL;
    tl_buf_free(&b);
    if (json_is_object(j) && json_is_object(json_object_get(j, "files"))) return j;
    json_decref(j);
    return json_pack("{s:i,s:{}}", "version", 1, "files");
}

static json_t *facts_json(const tl_file_facts *f) {
    return json_pack("{s:I,s:I,s:I,s:I}", "size", (json_int_t)f->size_bytes, "mtime_ns", (json_int_t)f->mtime_ns,
                     "inode", (json_int_t)f->inode, "dev", (json_int_t)f->dev);
}

static bool is_digest(const char *s) {
    return s && strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static bool recall(char out[65], const char *memory, const char *abs, const tl_file_facts *f) {
    json_t *j = memory_load(memory), *now = facts_json(f);
    const json_t *entry = json_object_get(json_object_get(j, "files"), abs);
    const char *hex = json_string_value(json_object_get(entry, "sha256"));
    bool same = is_digest(hex) && json_equal(json_object_get(entry, "facts"), now);
    if (same) memcpy(out, hex, 65);
    json_decref(now);
    json_decref(j);
    return same;
}

/* Best effort: a digest that cannot be remembered is computed again next time. */
static void remember(const char *hex, const char *memory, const char *abs, const tl_file_facts *f) {
    tl_lock *lock = NULL;
    char *lock_path = tl_xprintf("%s.lock", memory);
    char *dir = tl_path_dir(memory);
    if (tl_dir_make(dir, NULL) == TL_OK && tl_lock_take(&lock, lock_path, NULL) == TL_OK) {
        json_t *j = memory_load(memory), *files = json_object_get(j, "files");
        if (json_object_size(files) >= ENTRIES_MAX) json_object_clear(files);
        json_object_set_new(files, abs, json_pack("{s:o,s:s}", "facts", facts_json(f), "sha256", hex));
        char *text = tl_json_canonical(j);
        if (tl_file_write(memory, text, strlen(text), NULL) != TL_OK)
            tl_log(TL_LOG_DEBUG, "the digest of %s could not be remembered in %s", abs, memory);
        free(text);
        json_decref(j);
    }
    tl_lock_release(lock);
    free(dir);
    free(lock_path);
}

static tl_status digest_file(char out[65], const char *path, tl_file_progress_fn *progress, void *ctx, tl_err *e) {
    tl_status st = TL_OK;
    tl_file_facts before, after;
    char *abs = tl_path_abs(path), *cache = tl_path_cache();
    char *memory = tl_path_join(cache, "model-digests.json");
    TRY(tl_file_stat(&before, path, e));
    if (!before.exists) {
        tl_fail(e, TL_NOT_FOUND, "model %s does not exist", path);
        st = tl_remedy(e, "check the path");
        goto out;
    }
    if (recall(out, memory, abs, &before)) goto out;
    TRY(tl_file_sha256(out, path, progress, ctx, e));
    TRY(tl_file_stat(&after, path, e));
    if (before.size_bytes != after.size_bytes || before.mtime_ns != after.mtime_ns || before.inode != after.inode) {
        tl_fail(e, TL_CONFLICT, "%s changed while its digest was computed", path);
        st = tl_remedy(e, "wait until the download or copy is finished");
        goto out;
    }
    if (tl_clock_wall_ns() - after.mtime_ns > SETTLED_NS) remember(out, memory, abs, &after);
out:
    free(memory);
    free(cache);
    free(abs);
    return st;
}

tl_status tl_model_digest(char out[65], const char *path, tl_file_progress_fn *progress, void *ctx, tl_err *e) {
    uint32_t n = 0;
    tl_status st = TL_OK;
    char **part = model_parts(&n, path);
    tl_buf lines;
    tl_buf_init(&lines, 0);
    for (uint32_t i = 0; i < n; i++) {
        TRY(digest_file(out, part[i], progress, ctx, e));
        tl_buf_fmt(&lines, "%s\n", out);
    }
    if (n > 1) tl_sha256_hex(lines.p, lines.len, out);
out:
    tl_buf_free(&lines);
    model_parts_free(part, n);
    return st;
}
