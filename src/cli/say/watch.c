/* watch.c - `--watch`: something in a store is read again and again, and told. */
#include "cli/say/watch.h"

#include "base/base.h"
#include "core/wait.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

/* False if whoever reads what we print has left: it may be long until there is something to print,
 * and a script waits for us. */
static bool pause_for_reader(int64_t ms)
{
    const int64_t until_ns = hf__now_ns() + ms * HF__NS_PER_MS;
    struct pollfd reader = {.fd = STDOUT_FILENO}; /* events that come unasked: it is gone */
    int64_t left_ns;

    while ((left_ns = until_ns - hf__now_ns()) > 0)
        if (poll(&reader, 1, (int)(left_ns / HF__NS_PER_MS) + 1) > 0)
            return false;
    return true;
}

static enum hf_status read_once(const struct cli_watch *watch, struct hf_store **store, bool *there,
                                struct hf_error *err)
{
    enum hf_status status = HF_OK;

    *there = false;
    if (*store == NULL)
        status = hf_open_readonly(watch->context->store_url, store, err);
    return status == HF_OK ? watch->read(*store, watch->data, there, err) : status;
}

/* No answer is not a no: what was told last stands until there is one. */
int cli_watch(const struct cli_watch *watch)
{
    struct hf_store *store = NULL;
    enum hf_status trouble = HF_OK;

    do {
        struct hf_error err;
        bool there;
        enum hf_status status = read_once(watch, &store, &there, &err);

        if (status != HF_OK && !hf__wait_may_pass(status))
            return cli_fail(&err);
        if (status != HF_OK && trouble != status)
            cli_error("%s; still watching", cli_text_of(&err));
        trouble = status;
        if (status == HF_OK) {
            watch->tell(watch->data);
            (void)fflush(stdout);
        }
        if (status != HF_OK || !there) { /* what was read may have been of the store */
            hf_close(store);
            store = NULL;
        }
    } while (!ferror(stdout) && pause_for_reader(watch->every_ms));
    hf_close(store);
    return ferror(stdout) ? EXIT_HF_INTERNAL : cli_die_of(SIGPIPE);
}
