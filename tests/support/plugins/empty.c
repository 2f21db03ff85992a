/* empty.c - a plugin with nothing to offer. */
#include <holdfast/store.h>

const struct hf_store_plugin *hf_store_plugin(void)
{
    return NULL;
}
