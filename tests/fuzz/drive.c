/* Plain driver of a fuzz target: every file of the folder, and every prefix of each (streams get cut). */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char block[1 << 20];

/* Bytes in the file, of which `block` holds the first mebibyte; -1 when it cannot be read. */
static long load(const char *dir, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    if (f == NULL) return -1;
    const long n = (long)fread(block, 1, sizeof block, f);
    fclose(f);
    return n;
}

int main(int argc, char **argv) {
    long files = 0, runs = 0;
    DIR *d = argc > 1 ? opendir(argv[1]) : NULL;
    if (d == NULL) {
        fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
        return 2;
    }
    for (struct dirent *it; (it = readdir(d)) != NULL;) {
        if (it->d_name[0] == '.') continue;
        const long n = load(argv[1], it->d_name);
        if (n < 0) return 1;
        const size_t step = n > 4096 ? (size_t)n / 512 : 1;
        for (size_t k = 0; k <= (size_t)n; k += step, runs++) {
            /* an exact copy, so that a sanitizer sees a read past the end */
            uint8_t *copy = malloc(k ? k : 1);
            if (copy == NULL) return 1;
            memcpy(copy, block, k);
            LLVMFuzzerTestOneInput(copy, k);
            free(copy);
        }
        files++;
    }
    closedir(d);
    printf("%ld files, %ld inputs\n", files, runs);
    return files > 0 ? 0 : 1;
}
