/* What was compiled: the header is written anew at each build, when it differs. */
#include "cli/cli_impl.h"

#include "tally_version.h"

const char *tl_version(void) {
    return TALLY_VERSION;
}

const char *tl_version_revision(void) {
    return TALLY_REVISION;
}

bool tl_version_dirty(void) {
    return TALLY_DIRTY;
}

json_t *tl_version_json(void) {
    static const struct { const char *name, *version; } libraries[] = {TALLY_LIBRARIES};
    json_t *l = json_object();
    for (size_t i = 0; i < TL_COUNT(libraries); i++)
        json_object_set_new(l, libraries[i].name, json_string(libraries[i].version));
    return json_pack("{s:s, s:s, s:b, s:s, s:o}", "version", TALLY_VERSION, "revision", TALLY_REVISION,
                     "dirty", (int)TALLY_DIRTY, "compiler", TALLY_COMPILER, "libraries", l);
}
