/* Private to value: the graph and the parts its files share. */
#ifndef TL_VALUE_IMPL_H
#define TL_VALUE_IMPL_H

#include "value/value.h"

/* A tree is printed and stored whole, so that x = x + x in a loop must end before it is too large to be. */
enum { VALUE_MAX_DEPTH = 64, VALUE_MAX_NODES = 100000 };

struct tl_values {
    tl_arena *arena;
    json_t **sources; /* references that the nodes borrow */
    size_t n, cap;
};

/* A node to fill in; texts are "" and the interval is none. */
struct tl_value *value_node(tl_values *g);
struct tl_value *value_copy(tl_values *g, tl_value *v);
/* A copy of j (NULL = {}) that lives as long as the graph. */
const json_t *value_source(tl_values *g, const json_t *j);
tl_status value_check_source(tl_label label, const json_t *source, const char *name, tl_err *e) TL_MUST_USE;
tl_status value_check_number(double number, const char *null_reason, const char *name, tl_err *e) TL_MUST_USE;
/* Copies inputs into the graph and sets leaf_labels and depth from them. */
tl_status value_set_inputs(struct tl_value *v, tl_values *g, const tl_value_input *inputs, size_t n,
                           tl_err *e) TL_MUST_USE;
void value_undefined(struct tl_value *v, const char *reason); /* reason lives in the graph */

#endif
