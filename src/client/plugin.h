/* plugin.h - finding the plugins: in the folders of $HOLDFAST_STORE_PATH, then beside the library,
 * then where it was installed. */
#ifndef HF_CLIENT_PLUGIN_H
#define HF_CLIENT_PLUGIN_H

#include <holdfast/store.h>

/* Loads PLUGIN.so, for good, and returns what it exports as symbol. NULL: there is no such plugin,
 * and broken is left as it is; or it is of no use, and broken says why. */
void *hf__plugin_symbol(const char *plugin, const char *symbol, char *broken, size_t broken_size);

/* The path of a program that lies among the plugins. False: there is none. */
bool hf__plugin_program(const char *name, char *out, size_t size);

enum { HF__REMEDY_SIZE = 192 }; /* bytes of what to do about a plugin */

/* What to do if PLUGIN.so is not there, as the end of a sentence: plugin_missing.c. */
void hf__plugin_remedy(const char *plugin, char *out, size_t size);
/* Where the stores that are known come from, likewise. */
const char *hf__plugin_where(void);

/* What libholdfast offers to plugins: registry.c. */
extern const struct hf_host hf__host;

#endif /* HF_CLIENT_PLUGIN_H */
