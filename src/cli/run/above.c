/* above.c - how a nested run hears that the hold above it has ended.
 *
 * The watchdog above closes HOLDFAST_LOST_FD. Whoever started us may have closed ours, though, as
 * many programs close what they do not know: then we inspect the lock in the store now and then. */
#include "cli/run/run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { INSPECT_MS = 1000 };

struct run_above {
    struct cli_condition condition; /* of stop */
    pthread_t thread;
    struct hf_store *store;
    const char *name;
    uint64_t token;
    int heard; /* the write end of what run_above_begin returned */
    bool stop;
};

struct inspection {
    uint64_t token;
    bool held;
};

static void *watch(void *data);

struct run_above *run_above_begin(struct hf_store *store, const char *name, uint64_t token, int *fd)
{
    struct run_above *above = calloc(1, sizeof *above);
    int ends[2];

    if (above == NULL || pipe2(ends, O_CLOEXEC) < 0) {
        free(above);
        return NULL;
    }
    cli_condition_init(&above->condition);
    above->store = store;
    above->name = name;
    above->token = token;
    above->heard = ends[1];
    *fd = ends[0];
    if (cli_thread_start(&above->thread, watch, above))
        return above;
    (void)close(ends[0]);
    (void)close(ends[1]);
    cli_condition_clear(&above->condition);
    free(above);
    return NULL;
}

void run_above_end(struct run_above *above)
{
    if (above == NULL)
        return;
    pthread_mutex_lock(&above->condition.lock);
    above->stop = true;
    pthread_cond_broadcast(&above->condition.change);
    pthread_mutex_unlock(&above->condition.lock);
    pthread_join(above->thread, NULL);
    cli_condition_clear(&above->condition);
    free(above);
}

static bool compare(const struct hf_lock_info *info, void *data)
{
    struct inspection *seen = data;

    seen->held = info->held && info->token == seen->token && info->revocation == NULL;
    return false;
}

/* A store that does not answer tells nothing: the holder of the lock knows what to do about it. */
static void *watch(void *data)
{
    struct run_above *above = data;
    struct inspection seen = {.token = above->token, .held = true};

    pthread_mutex_lock(&above->condition.lock);
    while (!above->stop && seen.held) {
        struct timespec next = cli_condition_time(INSPECT_MS);

        while (!above->stop && cli_condition_wait(&above->condition, &next))
            continue;
        if (above->stop)
            break;
        pthread_mutex_unlock(&above->condition.lock);
        seen.held = false;
        if (hf_inspect(above->store, above->name, compare, &seen, NULL) != HF_OK)
            seen.held = true;
        pthread_mutex_lock(&above->condition.lock);
    }
    pthread_mutex_unlock(&above->condition.lock);
    (void)close(above->heard);
    return NULL;
}
