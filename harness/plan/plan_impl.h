/* Private to plan: the strict reading and the parts its files share. */
#ifndef TL_PLAN_IMPL_H
#define TL_PLAN_IMPL_H

#include "plan/plan.h"

struct tl_plan_impl {
    tl_arena *arena;
    json_t *doc;    /* normalised description: the plan's canonical form */
    json_t *models; /* list */
    json_t *cells;  /* list of {"params", "workload", "settings"}: what the cells borrow from */
};

typedef struct plan_check {
    const char *file;    /* or NULL */
    const json_t *lines; /* {path: line}, or NULL */
    const char *cell; /* label of the cell whose axes are resolved, or NULL: then {"$axis": ...} is allowed */
    tl_err *e;
} plan_check;

/* TL_INVALID with file, line and field in front. */
tl_status plan_fail(const plan_check *c, const char *path, const char *fmt, ...) TL_PRINTF(3, 4);
/* A new object with all defaults, from `given` (NULL = {}), whose fields are those below `prefix` ("" or
 * "workload."). */
tl_status plan_normal(json_t **out, const plan_check *c, const char *prefix, const json_t *given);
/* What no single field can say of a cell's workload: which fields each kind of schedule needs. (workload.c) */
tl_status plan_check_workload(const plan_check *c, const json_t *workload);
const tl_plan_field *plan_field(const char *path);
/* Short text of a value for messages and labels: a reference gives its name. Into out[size]. */
void plan_show(char *out, size_t size, const json_t *v);
/* The axis with this name, borrowed; NULL when there is none. */
const json_t *plan_axis(const json_t *axes, const char *name);
bool plan_is_reference(const json_t *v);
/* Does this selector fit the parameters? Its axes and values must exist (TL_INVALID names those there are).
 */
tl_status plan_fits(bool *out, const json_t *axes, const json_t *params, const char *selector, tl_err *e);

#endif
