/* Rates of the model module beside their rivals, in the same run and folder: synth against `dd if=/dev/zero` of the
 * same size, the digest against `sha256sum`. Not a test: it prints, it does not judge.
 * usage: bench_synth [FOLDER [SIZE [QUANT]]]   (default: a new temporary folder, 1GB, q4_0) */
#include "model/model.h"

#define ROUNDS 3

static double seconds(tl_ns from) {
    return (double)(tl_clock_now() - from) / 1e9;
}

static int fail(const tl_err *e) {
    fprintf(stderr, "%s\n", e->msg);
    return 1;
}

static tl_status rival(double *s, const char *const *argv, tl_err *e) {
    tl_child_result r;
    tl_ns t = tl_clock_now();
    tl_status st = tl_child_run(&r, &(tl_child_spec){.argv = argv}, 600 * TL_S, e);
    if (st != TL_OK) return st;
    *s = seconds(t);
    if (r.exit_code != 0) st = tl_fail(e, TL_IO, "%s: exit code %d: %s", argv[0], r.exit_code, r.err.p);
    tl_child_result_free(&r);
    return st;
}

/* One round: both writers, then both digests of the model. */
static tl_status compare(const char *path, const char *zeros, const tl_synth_spec *spec, uint64_t bytes, tl_err *e) {
    tl_status st = TL_OK;
    char of[4200], count[64], digest[65];
    double dd = 0, sum = 0, mb = (double)bytes / 1e6;
    snprintf(of, sizeof of, "of=%s", zeros);
    snprintf(count, sizeof count, "count=%" PRIu64, bytes);
    const char *const dd_argv[] = {"dd", "if=/dev/zero", of, "bs=1M", "iflag=count_bytes", count, NULL};
    const char *const sum_argv[] = {"sha256sum", path, NULL};
    TRY(rival(&dd, dd_argv, e));
    TRY(tl_file_remove(zeros, e));
    tl_ns t = tl_clock_now();
    TRY(tl_synth_write(path, spec, NULL, NULL, e));
    double synth = seconds(t);
    printf("write   synth %6.0f MB/s   dd        %6.0f MB/s   ratio %.2f\n", mb / synth, mb / dd, dd / synth);
    TRY(rival(&sum, sum_argv, e));
    t = tl_clock_now();
    TRY(tl_file_sha256(digest, path, NULL, NULL, e));
    double own = seconds(t);
    printf("digest  tally %6.0f MB/s   sha256sum %6.0f MB/s   ratio %.2f\n", mb / own, mb / sum, sum / own);
    TRY(tl_file_remove(path, e));
out:
    return st;
}

int main(int argc, char **argv) {
    tl_err e = {.msg = ""};
    tl_synth_spec spec = tl_synth_default();
    tl_synth_plan plan;
    char *dir = NULL;
    tl_status st = argc > 1 ? TL_OK : tl_dir_temp(&dir, "tally-bench", &e);
    if (argc > 1) dir = tl_xstrdup(argv[1]);
    if (st == TL_OK) st = tl_synth_set(&spec, "size", argc > 2 ? argv[2] : "1GB", &e);
    if (st == TL_OK && argc > 3) st = tl_synth_set(&spec, "quant", argv[3], &e);
    if (st == TL_OK) st = tl_synth_describe(&plan, &spec, &e);
    if (st != TL_OK) return fail(&e);
    char *path = tl_path_join(dir, "bench.gguf"), *zeros = tl_path_join(dir, "zeros");
    printf("%s, %" PRIu64 " bytes, in %s\n", plan.spec.name, plan.file_bytes, dir);
    for (int i = 0; i < ROUNDS && st == TL_OK; i++) st = compare(path, zeros, &spec, plan.file_bytes, &e);
    if (argc <= 1 && tl_dir_remove(dir, NULL) != TL_OK) fprintf(stderr, "%s is left behind\n", dir);
    free(zeros);
    free(path);
    free(dir);
    return st == TL_OK ? 0 : fail(&e);
}
