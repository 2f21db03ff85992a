/* plugin_missing.c - what to do about a plugin that is not there: in a Debian package of holdfast
 * the package that has it, in a build from source what it lacked. */
#include "client/plugin.h"

#include <stdio.h>
#include <string.h>

#ifndef HF_PACKAGED
#define HF_PACKAGED 0
#endif

/* From the files `apt` of their folders. */
static const struct {
    const char *plugin;
    const char *package;
    const char *needs;
} known[] = {
#include "client/plugins.inc"
};

void hf__plugin_remedy(const char *plugin, char *out, size_t size)
{
    static const char elsewhere[] = "set HOLDFAST_STORE_PATH to its folder, an absolute path";

    (void)snprintf(out, size, "%s", elsewhere);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].plugin, plugin) != 0)
            continue;
        if (HF_PACKAGED)
            (void)snprintf(out, size, "apt install %s, or %s", known[i].package, elsewhere);
        else
            (void)snprintf(out, size, "apt-get install %s, then make and make install; or %s",
                           known[i].needs, elsewhere);
    }
}

const char *hf__plugin_where(void)
{
    return HF_PACKAGED ? "each kind is in a package holdfast-KIND"
                       : "\"make\" ends with those it built";
}
