/* watch.h - `--watch`: something in a store is read again and again, and told. */
#ifndef HF_CLI_SAY_WATCH_H
#define HF_CLI_SAY_WATCH_H

#include "cli/cli.h"

/* Its line in the table of a command. */
#define CLI_WATCH_OPTION(target)                                                                   \
    {                                                                                              \
        0, "watch", CLI_FLAG, NULL, "keep going, and print each change", NULL, target, NULL        \
    }

struct cli_watch {
    const struct cli_context *context;
    int64_t every_ms;
    /* Reads it. *there: it is, or has been; else the store is opened again for the next time, for
     * it may not have been there when it was opened. */
    enum hf_status (*read)(struct hf_store *store, void *data, bool *there, struct hf_error *err);
    /* Prints what was read, if that is news. */
    void (*tell)(void *data);
    void *data;
};

/* Goes on until a signal ends us, the output cannot be written, or whoever reads it has left. A
 * store that does not answer is said once, and opened again. Returns the exit code. */
int cli_watch(const struct cli_watch *watch);

#endif /* HF_CLI_SAY_WATCH_H */
