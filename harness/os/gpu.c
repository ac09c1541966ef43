/* GPUs through NVIDIA's management library, loaded at run time. Declarations are ours, from the documented
 * interface (docs.nvidia.com/deploy/nvml-api); what a card or driver does not answer is null. TALLY_NVML
 * names another library file: the tests' stand-in, or one in an unusual place. */
#include <dlfcn.h>

#include "os/os_impl.h"

typedef void *nvml_device;

typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;

typedef struct nvml_use {
    unsigned gpu, memory;
} nvml_use;

enum { CLOCK_GRAPHICS = 0, CLOCK_MEMORY = 2, SENSOR_GPU = 0, TEXT = 96 };

typedef struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *);
    int (*handle)(unsigned, nvml_device *);
    int (*driver)(char *, unsigned);
    int (*cuda)(int *);
    int (*name)(nvml_device, char *, unsigned);
    int (*memory)(nvml_device, nvml_memory *);
    int (*clock)(nvml_device, int, unsigned *);
    int (*clock_max)(nvml_device, int, unsigned *);
    int (*temperature)(nvml_device, int, unsigned *);
    int (*power)(nvml_device, unsigned *);
    int (*power_limit)(nvml_device, unsigned *);
    int (*use)(nvml_device, nvml_use *);
    int (*capability)(nvml_device, int *, int *);
    int (*link_generation)(nvml_device, unsigned *);
    int (*link_width)(nvml_device, unsigned *);
    int (*bus_width)(nvml_device, unsigned *);
    int (*throttle)(nvml_device, unsigned long long *);
} nvml;

/* ISO C has no cast from data to function pointers; POSIX promises that the bytes are the same. */
static void load(void *library, const char *symbol, void *slot) {
    void *p = dlsym(library, symbol);
    memcpy(slot, &p, sizeof p);
}

static void load_table(nvml *n, void *library) {
    load(library, "nvmlInit_v2", &n->init);
    load(library, "nvmlShutdown", &n->shutdown);
    load(library, "nvmlDeviceGetCount_v2", &n->count);
    load(library, "nvmlDeviceGetHandleByIndex_v2", &n->handle);
    load(library, "nvmlSystemGetDriverVersion", &n->driver);
    load(library, "nvmlSystemGetCudaDriverVersion", &n->cuda);
    load(library, "nvmlDeviceGetName", &n->name);
    load(library, "nvmlDeviceGetMemoryInfo", &n->memory);
    load(library, "nvmlDeviceGetClockInfo", &n->clock);
    load(library, "nvmlDeviceGetMaxClockInfo", &n->clock_max);
    load(library, "nvmlDeviceGetTemperature", &n->temperature);
    load(library, "nvmlDeviceGetPowerUsage", &n->power);
    load(library, "nvmlDeviceGetEnforcedPowerLimit", &n->power_limit);
    load(library, "nvmlDeviceGetUtilizationRates", &n->use);
    load(library, "nvmlDeviceGetCudaComputeCapability", &n->capability);
    load(library, "nvmlDeviceGetCurrPcieLinkGeneration", &n->link_generation);
    load(library, "nvmlDeviceGetCurrPcieLinkWidth", &n->link_width);
    load(library, "nvmlDeviceGetMemoryBusWidth", &n->bus_width);
    load(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &n->throttle);
}

static void *open_library(void) {
    const char *own = tl_env("TALLY_NVML");
    if (own) return dlopen(own, RTLD_NOW | RTLD_LOCAL);
    size_t count;
    const char *const *names = os_nvml_names(&count);
    void *library = NULL;
    for (size_t i = 0; i < count && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* A number that a call gives; null when there is no such call or it refuses. Zero is a real answer here. */
static json_t *number(int (*fn)(nvml_device, unsigned *), nvml_device d, double unit) {
    unsigned v = 0;
    if (!fn || fn(d, &v) != 0) return json_null();
    return unit == 1 ? json_integer((json_int_t)v) : tl_json_real(v * unit);
}

static json_t *indexed(int (*fn)(nvml_device, int, unsigned *), nvml_device d, int index) {
    unsigned v = 0;
    return fn && fn(d, index, &v) == 0 ? json_integer((json_int_t)v) : json_null();
}

static void add_drifting(json_t *j, const nvml *n, nvml_device d) {
    nvml_memory memory = {0};
    bool known = n->memory && n->memory(d, &memory) == 0;
    nvml_use use = {0};
    bool use_known = n->use && n->use(d, &use) == 0;
    unsigned long long reasons = 0;
    bool reasons_known = n->throttle && n->throttle(d, &reasons) == 0;
    json_object_set_new(j, "memory_used_bytes", known ? json_integer((json_int_t)memory.used) : json_null());
    json_object_set_new(j, "memory_free_bytes", known ? json_integer((json_int_t)memory.free) : json_null());
    json_object_set_new(j, "clock_mhz", indexed(n->clock, d, CLOCK_GRAPHICS));
    json_object_set_new(j, "memory_clock_mhz", indexed(n->clock, d, CLOCK_MEMORY));
    json_object_set_new(j, "temperature_c", indexed(n->temperature, d, SENSOR_GPU));
    json_object_set_new(j, "power_w", number(n->power, d, 0.001));
    json_object_set_new(j, "busy_percent", use_known ? json_integer((json_int_t)use.gpu) : json_null());
    json_object_set_new(j, "throttle_reasons",
                        reasons_known ? json_integer((json_int_t)reasons) : json_null());
    json_object_set_new(j, "pcie_generation", number(n->link_generation, d, 1));
    json_object_set_new(j, "pcie_width", number(n->link_width, d, 1));
}

static void add_fixed(json_t *j, const nvml *n, nvml_device d) {
    char text[TEXT] = "";
    int major = 0, minor = 0, cuda = 0;
    nvml_memory memory = {0};
    bool known = n->memory && n->memory(d, &memory) == 0;
    bool named = n->name && n->name(d, text, sizeof text - 1) == 0;
    json_object_set_new(j, "name", named ? os_text_or_null(text) : json_null());
    json_object_set_new(j, "memory_total_bytes",
                        known ? json_integer((json_int_t)memory.total) : json_null());
    memset(text, 0, sizeof text);
    bool driver = n->driver && n->driver(text, sizeof text - 1) == 0;
    json_object_set_new(j, "driver", driver ? os_text_or_null(text) : json_null());
    bool version = n->cuda && n->cuda(&cuda) == 0;
    if (version) snprintf(text, sizeof text, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    json_object_set_new(j, "cuda", version ? json_string(text) : json_null());
    bool capable = n->capability && n->capability(d, &major, &minor) == 0;
    if (capable) snprintf(text, sizeof text, "%d.%d", major, minor);
    json_object_set_new(j, "compute_capability", capable ? json_string(text) : json_null());
    json_object_set_new(j, "clock_max_mhz", indexed(n->clock_max, d, CLOCK_GRAPHICS));
    json_object_set_new(j, "memory_clock_max_mhz", indexed(n->clock_max, d, CLOCK_MEMORY));
    json_object_set_new(j, "memory_bus_bits", number(n->bus_width, d, 1));
    json_object_set_new(j, "power_limit_w", number(n->power_limit, d, 0.001));
}

json_t *os_gpu_list(bool light) {
    void *library = open_library();
    if (!library) return json_null();
    nvml n = {0};
    load_table(&n, library);
    json_t *list = NULL;
    unsigned count = 0;
    bool usable = n.init && n.shutdown && n.count && n.handle && n.init() == 0;
    if (usable && n.count(&count) == 0) {
        list = json_array();
        for (unsigned i = 0; i < count; i++) {
            nvml_device d = NULL;
            json_t *j = json_object();
            json_object_set_new(j, "index", json_integer((json_int_t)i));
            if (n.handle(i, &d) == 0) {
                if (!light) add_fixed(j, &n, d);
                add_drifting(j, &n, d);
            }
            json_array_append_new(list, j);
        }
    }
    if (usable) n.shutdown();
    dlclose(library);
    return list ? list : json_null();
}
