/* The manifest: everything a reader's `tally rerun` needs, as one JSON object, in its own file and inside the
 * page. */
#include "report/report_impl.h"

#define MARK "<script type=\"application/json\" id=\"tally-manifest\">"
#define MANIFEST_MAX ((size_t)256 << 20)

static json_t *entry(const rep_block *k) {
    static const char *const keys[] = {"label", "run", "revision", "machine", "engine", "model", "stale"};
    json_t *o = json_pack("{s:s, s:s, s:s*, s:s*}", "id", k->id, "kind", k->kind, "caption", k->caption,
                          "command", k->command);
    for (size_t i = 0; i < TL_COUNT(keys); i++) {
        const char *v = tl_json_str(k->json, keys[i], NULL);
        if (v) json_object_set_new(o, keys[i], json_string(v));
    }
    if (k->spec) json_object_set(o, "spec", k->spec);
    if (k->facts) json_object_set(o, "facts", k->facts);
    const char *parts[] = {"columns", "rows", "value", "manifest"};
    for (size_t i = 0; i < TL_COUNT(parts); i++) {
        json_t *v = json_object_get(k->json, parts[i]);
        if (v) json_object_set(o, parts[i], v);
    }
    return o;
}

json_t *rep_manifest(const rep *r) {
    char sha[65];
    tl_sha256_hex(r->text.p, r->text.len, sha);
    json_t *figures = json_array(), *values = json_array();
    for (size_t i = 0; i < r->n_blocks; i++) json_array_append_new(figures, entry(&r->blocks[i]));
    for (size_t i = 0; i < r->n_values; i++) {
        json_array_append_new(values, json_pack("{s:I, s:s, s:O}", "n", (json_int_t)r->values[i].note, "expr",
                                                r->values[i].expr, "value", r->values[i].json));
    }
    return json_pack("{s:i, s:s, s:s, s:s, s:O, s:s, s:s, s:o, s:o}", "tally_report", 1, "name", r->name,
                     "title", tl_json_str(r->front, "title", ""), "lang", r->w->lang, "front", r->front,
                     "source_sha256", sha, "version", r->spec->version ? r->spec->version : "", "figures",
                     figures, "values", values);
}

tl_status tl_report_manifest_read(json_t **out, const char *path, tl_err *e) {
    tl_status st = TL_OK;
    tl_buf b;
    char *file = NULL;
    *out = NULL;
    tl_buf_init(&b, 0);
    if (tl_dir_exists(path)) {
        file = tl_path_join(path, "manifest.json");
        if (!tl_file_exists(file)) free(file), file = tl_path_join(path, "report.html");
        path = file;
    }
    TRY(tl_file_read(&b, path, MANIFEST_MAX, e));
    const char *p = b.p, *end = b.p + b.len, *mark = strstr(b.p, MARK);
    while (*p && strchr(" \t\r\n", *p)) p++;
    if (mark != NULL) {
        p = mark + strlen(MARK);
        end = strstr(p, "</script>");
    }
    if (end == NULL || *p != '{') {
        tl_fail(e, TL_INVALID, "%s: no tally manifest in it", path);
        st = tl_remedy(e, "give a report.html or manifest.json that `tally report build` wrote");
        goto out;
    }
    TRY(tl_json_parse(out, p, (size_t)(end - p), path, e));
    if (tl_json_int(*out, "tally_report", 0) != 1 || !json_is_array(json_object_get(*out, "figures"))) {
        tl_fail(e, TL_INVALID, "%s: a manifest of version %" PRId64 " is not known", path,
                tl_json_int(*out, "tally_report", 0));
        json_decref(*out);
        *out = NULL;
        st = tl_remedy(e, "a newer tally may have written it");
    }
out:
    free(file);
    tl_buf_free(&b);
    return st;
}

tl_status tl_report_manifest_figure(const json_t **out, const json_t *manifest, const char *id, tl_err *e) {
    const json_t *list = json_object_get(manifest, "figures"), *o;
    size_t i, n = json_array_size(list);
    const char **names = tl_xalloc((n + 1) * sizeof *names);
    tl_status st = TL_OK;
    tl_buf all;
    tl_buf_init(&all, 0);
    *out = NULL;
    json_array_foreach(list, i, o) {
        names[i] = tl_json_str(o, "id", "");
        if (strcmp(names[i], id) == 0) *out = o;
        tl_buf_fmt(&all, "%s%s", i ? ", " : "", names[i]);
    }
    if (*out == NULL) {
        const char *near = tl_nearest(id, names, n);
        tl_fail(e, TL_NOT_FOUND, "the report has no figure '%.60s'", id);
        st = near ? tl_remedy(e, "did you mean '%s'? It has: %.200s", near, all.p)
                  : tl_remedy(e, "it has: %.200s", n ? all.p : "none");
    }
    tl_buf_free(&all);
    free(names);
    return st;
}
