/* Host facts: the part that is the same everywhere, and the frame for the platform's part. */
#include <sys/utsname.h>

#include "os/os_impl.h"

static json_t *clock_facts(void) {
    char offset[8], stamp[32];
    int64_t now = tl_clock_wall_ns();
    tl_clock_utc_offset(offset, now);
    tl_clock_iso8601(stamp, now);
    return json_pack("{s:s, s:s, s:s, s:I}", "source", tl_clock_name(), "utc", stamp, "utc_offset", offset,
                     "wall_ns", (json_int_t)now);
}

json_t *tl_host_snapshot(void) {
    json_t *root = json_object();
    json_object_set_new(root, "clock", clock_facts());
    os_host_add(root, false);
    struct utsname u;
    if (uname(&u) == 0) {
        json_t *os = json_object_get(root, "os");
        json_object_set_new(os, "kernel", os_text_or_null(u.release));
        json_object_set_new(os, "system", os_text_or_null(u.sysname));
        json_object_set_new(os, "arch", os_text_or_null(u.machine));
    }
    json_object_set_new(root, "gpu", os_gpu_list(false));
    return root;
}

json_t *tl_host_light(void) {
    json_t *root = json_object();
    json_object_set_new(root, "clock", clock_facts());
    os_host_add(root, true);
    json_object_set_new(root, "gpu", os_gpu_list(true));
    return root;
}
