/* plugin.h - code that is loaded only when it is needed: stores, and what the relay talks through.
 *
 * A plugin is a file PLUGIN.so in a folder of $HOLDFAST_STORE_PATH, beside libholdfast or the
 * program, or where it was installed. */
#ifndef HF_BASE_PLUGIN_H
#define HF_BASE_PLUGIN_H

#include <stddef.h>

/* Loads the plugin and finds its symbol. NULL: broken says why one that is there is no use; it is
 * "" if there is none. */
void *hf__plugin_symbol(const char *plugin, const char *symbol, char *broken, size_t broken_size);

#endif /* HF_BASE_PLUGIN_H */
