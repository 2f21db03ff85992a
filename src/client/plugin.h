/* plugin.h - finding the plugins: in the folders of $HOLDFAST_STORE_PATH, then beside the library,
 * then where it was installed. */
#ifndef HF_CLIENT_PLUGIN_H
#define HF_CLIENT_PLUGIN_H

#include <holdfast/store.h>

/* Loads PLUGIN.so, for good, and returns what it exports as symbol. NULL: there is no such plugin,
 * and broken is left as it is; or it is of no use, and broken says why. */
void *hf__plugin_symbol(const char *plugin, const char *symbol, char *broken, size_t broken_size);

/* What libholdfast offers to plugins: registry.c. */
extern const struct hf_host hf__host;

#endif /* HF_CLIENT_PLUGIN_H */
