/* Rendering: script and data into a private folder, gnuplot there, everything it left is checked, and only
 * then written to its place. gnuplot's exit code says little (an all-NaN figure leaves an empty file; a
 * dropped row says nothing), so rows and marks are counted against what was given. */
#include "figure/figure_impl.h"

#include "os/os.h"

#define TIMEOUT (60 * TL_S)
#define OUTPUT_MAX ((size_t)32 << 20)

static tl_status run(tl_child_result *r, const char *const *argv, const char *cwd, tl_err *e) {
    const char *path = tl_env("PATH");
    char *p = tl_xprintf("PATH=%s", path ? path : "/usr/local/bin:/usr/bin:/bin");
    char *home = tl_xprintf("HOME=%s", cwd);
    char *cache = tl_xprintf("XDG_CACHE_HOME=%s", cwd);
    const char *env[] = {p, home, cache, "LC_ALL=C.UTF-8", NULL};
    tl_child_spec spec = {.argv = argv,
                          .env = env,
                          .cwd = cwd,
                          .out = {.to = TL_TO_CAPTURE, .limit = 65536},
                          .err = {.to = TL_TO_CAPTURE, .limit = 65536},
                          .limit_cpu_s = 60,
                          .limit_file_bytes = OUTPUT_MAX};
    tl_status st = tl_child_run(r, &spec, TIMEOUT, e);
    free(p);
    free(home);
    free(cache);
    return st;
}

static tl_status no_gnuplot(tl_err *e) {
    return tl_remedy(e, "apt-get install gnuplot-nox (Debian), brew install gnuplot (macOS)");
}

tl_status tl_figure_gnuplot(char **version_out, const tl_figure_options *options, tl_err *e) {
    const char *argv[] = {options && options->gnuplot ? options->gnuplot : "gnuplot", "--version", NULL};
    tl_child_result r = {0};
    *version_out = NULL;
    tl_status st = run(&r, argv, "/", e);
    int major = 0, minor = 0;
    if (st != TL_OK) {
        if (st == TL_MISSING || st == TL_NOT_FOUND) {
            tl_fail(e, TL_MISSING, "gnuplot is not there (%s)", argv[0]);
            st = no_gnuplot(e);
        }
        goto out;
    }
    if (r.exit_code != 0 || sscanf(r.out.p, "gnuplot %d.%d", &major, &minor) != 2) {
        st = tl_fail(e, TL_MISSING, "'%s --version' did not answer like gnuplot (exit code %d: '%.60s')",
                     argv[0], r.exit_code, r.out.p ? r.out.p : "");
        no_gnuplot(e);
        goto out;
    }
    if (major < 5 || (major == 5 && minor < 2)) {
        tl_fail(e, TL_MISSING, "gnuplot %d.%d is too old: 5.2 or newer is needed", major, minor);
        st = no_gnuplot(e);
        goto out;
    }
    *version_out = tl_xstrndup(r.out.p + 8, strcspn(r.out.p + 8, "\r\n"));
    for (size_t n = strlen(*version_out); n > 0 && (*version_out)[n - 1] == ' ';) (*version_out)[--n] = 0;
out:
    tl_child_result_free(&r);
    return st;
}

tl_status tl_figure_font(const char **out, const char *lang, tl_err *e) {
    static const char *const names[] = {"Noto Sans CJK TC", "Noto Sans CJK SC",   "Noto Sans TC",
                                        "Noto Sans SC",     "Source Han Sans TC", "Source Han Sans SC",
                                        "PingFang TC",      "PingFang SC",        "WenQuanYi Zen Hei",
                                        "AR PL UMing TW",   "Droid Sans Fallback"};
    const char *argv[] = {"fc-list", ":lang=zh", "family", NULL};
    tl_child_result r = {0};
    tl_status st = run(&r, argv, "/", NULL);
    bool simplified = tl_str_eq(lang, "zh-Hans");
    *out = NULL;
    for (size_t i = 0; st == TL_OK && r.exit_code == 0 && *out == NULL && i < TL_COUNT(names); i++) {
        size_t k = simplified && i < 8 ? (i ^ 1u) : i;
        if (r.out.p && strstr(r.out.p, names[k])) *out = names[k];
    }
    tl_child_result_free(&r);
    if (*out != NULL) return TL_OK;
    tl_fail(e, TL_MISSING, "no font with Chinese characters that tally knows is installed");
    return tl_remedy(
        e, "apt-get install fonts-noto-cjk fontconfig (Debian); macOS has PingFang, brew install fontconfig");
}

static bool has_cjk(const char *s) {
    for (; s && *s; s++) {
        if ((unsigned char)*s >= 0xe3) return true; /* U+3000 and above */
    }
    return false;
}

static bool needs_cjk(const fig *f) {
    bool yes = has_cjk(f->x.label) || has_cjk(f->y.label) || has_cjk(f->x.unit) || has_cjk(f->y.unit);
    for (size_t i = 0; i < f->n_series; i++) {
        yes |= has_cjk(f->series[i].name);
        for (size_t j = 0; j < f->series[i].n; j++) yes |= has_cjk(f->series[i].points[j].text);
    }
    const json_t *lists[] = {f->x.categories, f->y.categories};
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < json_array_size(lists[l]); i++)
            yes |= has_cjk(json_string_value(json_array_get(lists[l], i)));
    }
    return yes;
}

static json_t *file_fact(const char *name, const char *p, size_t n) {
    char sha[65];
    tl_sha256_hex(p, n, sha);
    return json_pack("{s:s, s:s, s:I}", "name", name, "sha256", sha, "bytes", (json_int_t)n);
}

/* The counts that gnuplot's own `stats` printed, against ours. */
static tl_status check_rows(const fig *f, const char *said, json_t *facts, tl_err *e) {
    size_t given = 0, missing = 0;
    for (size_t i = 0; i < f->n_series; i++) {
        const fig_series *s = &f->series[i];
        char key[32];
        long drawn = -1;
        snprintf(key, sizeof key, "rows %zu ", i);
        const char *p = said ? strstr(said, key) : NULL;
        if (p == NULL || sscanf(p + strlen(key), "%ld", &drawn) != 1) {
            return tl_fail(e, TL_INTERNAL, "gnuplot did not say how many rows of series %zu it read", i + 1);
        }
        size_t have = 0;
        for (size_t j = 0; j < s->n; j++)
            have += !(s->has_y ? s->points[j].y != s->points[j].y : s->points[j].ylo != s->points[j].ylo);
        if ((size_t)drawn != have) {
            return tl_fail(e, TL_INTERNAL, "gnuplot read %ld rows of series '%s', given were %zu", drawn,
                           s->name, have);
        }
        given += s->n;
        missing += s->n - have;
    }
    json_object_set_new(facts, "rows_given", json_integer((json_int_t)given));
    json_object_set_new(facts, "rows_drawn", json_integer((json_int_t)(given - missing)));
    json_object_set_new(facts, "rows_missing", json_integer((json_int_t)missing));
    return TL_OK;
}

typedef struct output {
    const char *key;
    char *name, *data;
    size_t n;
} output;

static tl_status take_svg(output *o, const char *tmp, const fig *f, const char *suffix, const char *sha,
                          tl_err *e) {
    tl_status st = TL_OK;
    tl_buf raw, done;
    tl_buf_init(&raw, 0);
    tl_buf_init(&done, 0);
    size_t marks = 0, expected = fig_marks_expected(f);
    char *path = tl_path_join(tmp, o->name);
    TRY(tl_file_read(&raw, path, OUTPUT_MAX, e));
    TRY(svg_check(&marks, raw.p, raw.len, o->name, e));
    if (marks != expected) {
        st = tl_fail(e, TL_INTERNAL, "%s: gnuplot drew %zu marks, %zu were given", o->name, marks, expected);
        goto out;
    }
    TRY(svg_finish(&done, raw.p, f, suffix, sha, e));
    TRY(svg_check(&marks, done.p, done.len, o->name, e));
    o->n = done.len;
    o->data = tl_buf_take(&done);
out:
    free(path);
    tl_buf_free(&raw);
    tl_buf_free(&done);
    return st;
}

static tl_status take_png(output *o, const char *tmp, tl_err *e) {
    tl_status st = TL_OK;
    tl_buf raw;
    tl_buf_init(&raw, 0);
    char *path = tl_path_join(tmp, o->name);
    TRY(tl_file_read(&raw, path, OUTPUT_MAX, e));
    if (raw.len < 1000 || memcmp(raw.p, "\x89PNG\r\n\x1a\n", 8) != 0 ||
        memcmp(raw.p + raw.len - 8, "IEND\xae\x42\x60\x82", 8) != 0) {
        st = tl_fail(e, TL_INTERNAL, "%s: gnuplot left %zu bytes that are not a whole PNG", o->name, raw.len);
        goto out;
    }
    o->n = raw.len;
    o->data = tl_buf_take(&raw);
out:
    free(path);
    tl_buf_free(&raw);
    return st;
}

/* Runs gnuplot in `tmp`, where script and data are. */
static tl_status draw(const fig *f, const char *tmp, const char *gp, const char *program, json_t *facts,
                      tl_err *e) {
    const char *argv[] = {program, "-d", gp, NULL};
    tl_child_result r = {0};
    tl_status st = TL_OK;
    TRY(run(&r, argv, tmp, e));
    if (r.timed_out) {
        st = tl_fail(e, TL_TIMEOUT, "gnuplot did not finish within 60 s");
    } else if (r.exit_code != 0) {
        const char *said = r.err.p ? r.err.p : ""; /* the reason stands at the end, after its warnings */
        size_t n = strlen(said);
        st = tl_fail(e, TL_INTERNAL, "gnuplot ended with exit code %d: %s", r.exit_code,
                     n > 300 ? said + n - 300 : said);
    } else {
        tl_buf both;
        tl_buf_init(&both, 0);
        tl_buf_str(&both, r.out.p ? r.out.p : "");
        tl_buf_str(&both, r.err.p ? r.err.p : "");
        st = check_rows(f, both.p, facts, e);
        tl_buf_free(&both);
    }
out:
    tl_child_result_free(&r);
    return st;
}

static tl_status publish(const output *o, size_t n, const char *dir, json_t *facts, tl_err *e) {
    tl_status st = tl_dir_make(dir, e);
    json_t *files = json_object();
    for (size_t i = 0; st == TL_OK && i < n; i++) {
        if (o[i].data == NULL) continue;
        char *path = tl_path_join(dir, o[i].name);
        st = tl_file_write(path, o[i].data, o[i].n, e);
        free(path);
        json_object_set_new(files, o[i].key, file_fact(o[i].name, o[i].data, o[i].n));
    }
    json_object_set_new(facts, "files", files);
    return st;
}

static tl_status render(json_t *facts, const fig *f, const char *dir, const tl_figure_options *options,
                        tl_err *e) {
    static const char *const keys[] = {"gp", "tsv", "svg", "narrow", "png"};
    static const char *const ends[] = {".gp", ".tsv", ".svg", "-narrow.svg", ".png"};
    tl_status st = TL_OK;
    char *version = NULL, *tmp = NULL;
    const char *font = "Sans";
    output o[TL_COUNT(keys)] = {{0}};
    bool png = !(options && options->no_png);
    tl_buf text[2];
    tl_buf_init(&text[0], 0);
    tl_buf_init(&text[1], 0);
    for (size_t i = 0; i < TL_COUNT(keys); i++)
        o[i].key = keys[i], o[i].name = tl_xprintf("%s%s", f->id, ends[i]);
    TRY(tl_figure_gnuplot(&version, options, e));
    if (png && (needs_cjk(f) || f->lang[0] == 'z')) {
        st = tl_figure_font(&font, f->lang, e);
        if (st != TL_OK && needs_cjk(f)) goto out;
        if (st != TL_OK) font = "Sans";
        tl_err_clear(e);
    }
    json_object_set_new(facts, "gnuplot", json_string(version));
    json_object_set_new(facts, "font", json_string(font));
    fig_script(&text[0], f, font, png);
    fig_data(&text[1], f);
    TRY(tl_dir_temp(&tmp, "tally-figure", e));
    for (size_t i = 0; i < 2; i++) {
        char *path = tl_path_join(tmp, o[i].name);
        st = tl_file_write(path, text[i].p, text[i].len, e);
        free(path);
        if (st != TL_OK) goto out;
        o[i].n = text[i].len;
        o[i].data = tl_buf_take(&text[i]);
    }
    char sha[65];
    tl_sha256_hex(o[1].data, o[1].n, sha);
    json_object_set_new(facts, "data_sha256", json_string(sha));
    TRY(draw(f, tmp, o[0].name, options && options->gnuplot ? options->gnuplot : "gnuplot", facts, e));
    TRY(take_svg(&o[2], tmp, f, "", sha, e));
    TRY(take_svg(&o[3], tmp, f, "-narrow", sha, e));
    if (png) TRY(take_png(&o[4], tmp, e));
    TRY(publish(o, TL_COUNT(o), dir, facts, e));
out:
    if (tmp != NULL && tl_dir_remove(tmp, NULL) != TL_OK) tl_log(TL_LOG_WARN, "could not remove %s", tmp);
    for (size_t i = 0; i < TL_COUNT(o); i++) free(o[i].name), free(o[i].data);
    tl_buf_free(&text[0]);
    tl_buf_free(&text[1]);
    free(version);
    free(tmp);
    return st;
}

tl_status tl_figure_render(json_t **out, const json_t *spec, const char *dir,
                           const tl_figure_options *options, tl_err *e) {
    fig f = {0};
    *out = NULL;
    json_t *facts = json_object();
    tl_status st = fig_read(&f, spec, e);
    if (st == TL_OK) {
        json_object_set_new(facts, "id", json_string(f.id));
        st = render(facts, &f, dir, options, e);
    }
    if (st != TL_OK) {
        tl_wrap(e, "figure '%s'", tl_json_str(spec, "id", "?"));
        json_decref(facts);
    } else {
        *out = facts;
    }
    fig_free(&f);
    return st;
}
