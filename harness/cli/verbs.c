/* The table of verbs, from verbs.h. */
#include "cli/cli_impl.h"

#define TL_VERB(name) extern const tl_verb tl_verb_##name;
#include "cli/verbs.h"
#undef TL_VERB

const tl_verb *const tl_verbs[] = {
#define TL_VERB(name) &tl_verb_##name,
#include "cli/verbs.h"
#undef TL_VERB
    NULL,
};

const tl_verb *tl_verb_find(const char *name) {
    for (size_t i = 0; tl_verbs[i] != NULL; i++)
        if (tl_str_eq(tl_verbs[i]->name, name)) return tl_verbs[i];
    return NULL;
}
