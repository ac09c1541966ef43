/* A stand-in for NVIDIA's management library: two cards; the second answers little. */
#include <string.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d);
int nvmlSystemGetDriverVersion(char *out, unsigned n);
int nvmlSystemGetCudaDriverVersion(int *v);
int nvmlDeviceGetName(void *d, char *out, unsigned n);
int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *m);
int nvmlDeviceGetClockInfo(void *d, int kind, unsigned *mhz);
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw);
int nvmlDeviceGetUtilizationRates(void *d, unsigned *u);
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *c);

static int cards[2];

static int text(char *out, unsigned n, const char *s) {
    if (strlen(s) + 1 > n) return 7;
    memcpy(out, s, strlen(s) + 1);
    return 0;
}

int nvmlInit_v2(void) {
    return 0;
}

int nvmlShutdown(void) {
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n) {
    *n = 2;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) {
    *d = &cards[i];
    return 0;
}

int nvmlSystemGetDriverVersion(char *out, unsigned n) {
    return text(out, n, "550.54.15");
}

int nvmlSystemGetCudaDriverVersion(int *v) {
    *v = 12040;
    return 0;
}

int nvmlDeviceGetName(void *d, char *out, unsigned n) {
    return text(out, n, d == &cards[0] ? "NVIDIA GeForce RTX 4070 Ti" : "NVIDIA Other");
}

int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *m) {
    if (d != &cards[0]) return 3; /* not supported */
    m[0] = 12878610432ull;
    m[1] = 12000000000ull;
    m[2] = 878610432ull;
    return 0;
}

int nvmlDeviceGetClockInfo(void *d, int kind, unsigned *mhz) {
    (void)d;
    *mhz = kind == 2 ? 10501 : 2610;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) {
    (void)d;
    *mw = 71500;
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *d, unsigned *u) {
    (void)d;
    u[0] = u[1] = 0; /* idle is an answer, not an absence */
    return 0;
}

int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *c) {
    (void)sensor;
    *c = 41;
    return d == &cards[0] ? 0 : 3;
}
