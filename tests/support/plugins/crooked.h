/* crooked.h - a store that is nearly right: crooked_NAME:DIR, a lock is flock(2) of a file in DIR.
 * What is wrong with it, the including file says:
 *
 *   PLUGIN_SCHEME   what it is called
 *   FORGETS_ODDS    at one try of this many it does not look whether somebody holds the lock; 0:
 *                   never
 *   TOKEN_US        how many microseconds have the same token */
#include "tiny.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { HOLDS_MAX = 64 };

struct crooked {
    struct hf_store_base base;
    char dir[256];
    pthread_mutex_t lock;
    struct {
        char owner[HF_OWNER_LEN + 1];
        int fd; /* of the file, if the owner is not "" */
    } holds[HOLDS_MAX];
};

static int open_file(struct crooked *store, const char *name)
{
    char path[600];
    size_t used = (size_t)snprintf(path, sizeof path, "%s/", store->dir);

    for (; *name != '\0' && used + 1 < sizeof path; name++)
        path[used++] = *name == '/' ? '%' : *name;
    path[used] = '\0';
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static bool forgets(struct crooked *store)
{
    uint32_t dice;

    store->base.host->random(&dice, sizeof dice);
    return FORGETS_ODDS > 0 && dice % (FORGETS_ODDS + 1) == 0;
}

static void keep(struct crooked *store, const char *owner, int fd)
{
    pthread_mutex_lock(&store->lock);
    for (int i = 0; i < HOLDS_MAX; i++) {
        if (store->holds[i].owner[0] == '\0') {
            memcpy(store->holds[i].owner, owner, HF_OWNER_LEN + 1);
            store->holds[i].fd = fd;
            break;
        }
    }
    pthread_mutex_unlock(&store->lock);
}

static enum hf_status crooked_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                                      struct hf_grant *grant, struct hf_error *err)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct crooked *store = (struct crooked *)base;
    int fd = open_file(store, claim->name);

    if (fd < 0)
        return base->host->fail(err, HF_UNREACHABLE, "no file: %s", strerror(errno));
    for (;;) {
        grant->sent_at_ns = base->host->now_ns();
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || forgets(store))
            break;
        if (base->host->now_ns() >= claim->wait_until_ns) {
            (void)close(fd);
            return base->host->fail(err, HF_BUSY, "busy");
        }
        (void)nanosleep(&pause, NULL);
    }
    grant->token = (uint64_t)(base->host->wall_us() / TOKEN_US);
    keep(store, claim->owner, fd);
    return HF_OK;
}

static enum hf_status crooked_renew(struct hf_store_base *base, const struct hf_claim *claim,
                                    struct hf_grant *grant, struct hf_error *err)
{
    (void)claim;
    (void)err;
    grant->sent_at_ns = base->host->now_ns();
    return HF_OK;
}

static enum hf_status crooked_release(struct hf_store_base *base, const struct hf_claim *claim,
                                      struct hf_error *err)
{
    struct crooked *store = (struct crooked *)base;

    (void)err;
    pthread_mutex_lock(&store->lock);
    for (int i = 0; i < HOLDS_MAX; i++) {
        if (strcmp(store->holds[i].owner, claim->owner) == 0) {
            (void)close(store->holds[i].fd);
            store->holds[i].owner[0] = '\0';
        }
    }
    pthread_mutex_unlock(&store->lock);
    return HF_OK;
}

static void crooked_close(struct hf_store_base *base, bool forked)
{
    struct crooked *store = (struct crooked *)base;

    (void)forked;
    for (int i = 0; i < HOLDS_MAX; i++)
        if (store->holds[i].owner[0] != '\0')
            (void)close(store->holds[i].fd);
    free(store);
}

static enum hf_status open_it(const struct hf_host *host, const char *url, int64_t deadline_ns,
                              struct hf_store_base **out, struct hf_error *err);

static const char *const schemes[] = {PLUGIN_SCHEME, NULL};
static const struct hf_store_ops ops = {.size = sizeof ops,
                                        .schemes = schemes,
                                        .features = HF_FEATURE_CRASH_RELEASE,
                                        .open = open_it,
                                        .close = crooked_close,
                                        .acquire = crooked_acquire,
                                        .renew = crooked_renew,
                                        .release = crooked_release,
                                        .list = tiny_list};

static enum hf_status open_it(const struct hf_host *host, const char *url, int64_t deadline_ns,
                              struct hf_store_base **out, struct hf_error *err)
{
    struct crooked *store = calloc(1, sizeof *store);

    (void)deadline_ns;
    (void)err;
    if (store == NULL)
        return HF_NOMEM;
    store->base.ops = &ops;
    store->base.host = host;
    (void)snprintf(store->dir, sizeof store->dir, "%s", strchr(url, ':') + 1);
    pthread_mutex_init(&store->lock, NULL);
    *out = &store->base;
    return HF_OK;
}

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = HF_STORE_ABI, .ops = &ops};

    return &plugin;
}
