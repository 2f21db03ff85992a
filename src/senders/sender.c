/* sender.c - finds the plugin that sends over HTTP. */
#include "senders/sender.h"
#include "client/plugin.h"

#include <string.h>

enum hf_status hf__sender_find(const struct hf__sender_ops **out, struct hf_error *err)
{
    const struct hf__sender_ops *(*entry)(void);
    char broken[160] = "";
    char remedy[HF__REMEDY_SIZE];
    void *symbol = hf__plugin_symbol("send-http", "hf_sender_plugin", broken, sizeof broken);

    hf__plugin_remedy("send-http", remedy, sizeof remedy);
    if (symbol == NULL)
        return hf__fail(err, HF_UNSUPPORTED, "--http needs the plugin send-http.so: %s",
                        broken[0] != '\0' ? broken : remedy);
    memcpy(&entry, &symbol, sizeof entry);
    *out = entry();
    if ((*out)->abi != HF__SENDER_ABI)
        return hf__fail(err, HF_UNSUPPORTED, "the plugin send-http.so is of another version");
    return HF_OK;
}
