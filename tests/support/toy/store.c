/* store.c - a toy store: toy:FILE is a table of locks in a file, changed by one at a time.
 *
 * It is here to show how little a store needs: a folder, and a line in the table of registry.c. No
 * queue, so whoever waits asks again and again; no crash release; nothing survives a reboot. */
#include "base/base.h"
#include "base/patience.h"
#include "core/token.h"
#include "core/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <holdfast/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOOK_NS (5 * HF__NS_PER_MS) /* between two looks of a waiter */

struct row {
    char name[HF_NAME_MAX + 1];
    char owner[HF_OWNER_LEN + 1];
    char label[HF_LABEL_MAX + 1];
    uint64_t token; /* the last one, even of a lock that is free */
    uint32_t ttl_ms;
    int64_t end_ns; /* 0: free */
};

struct toy_store {
    struct hf_store_base base;
    char path[HF__URL_MAX];
};

/* A row of the table, with the table locked. fd -1: there is no table to be had. */
struct table {
    int fd;
    off_t at;
    struct row row; /* of the lock that was looked for; token 0: a new one */
};

static enum hf_status broken(const struct toy_store *store, struct hf_error *err)
{
    return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->path, ": %s", strerror(errno));
}

/* A descriptor of its own for every call: flock(2) tells threads apart by it, too. */
static int open_table(const struct toy_store *store)
{
    int fd = open(store->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd >= 0 && flock(fd, LOCK_EX) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static struct table find(const struct toy_store *store, const char *name)
{
    struct table table = {.fd = open_table(store)};

    for (; table.fd >= 0; table.at += (off_t)sizeof table.row) {
        if (pread(table.fd, &table.row, sizeof table.row, table.at) != sizeof table.row) {
            memset(&table.row, 0, sizeof table.row);
            (void)snprintf(table.row.name, sizeof table.row.name, "%s", name);
            break;
        }
        if (strcmp(table.row.name, name) == 0)
            break;
    }
    if (table.row.end_ns <= store->base.host->now_ns())
        table.row.end_ns = 0;
    return table;
}

/* Ends the use of the table; changed: the row is written first. */
static bool put(struct table *table, bool changed)
{
    bool written = !changed || pwrite(table->fd, &table->row, sizeof table->row, table->at) ==
                                   (ssize_t)sizeof table->row;

    (void)close(table->fd);
    return written;
}

static bool holds(const struct table *table, const struct hf_claim *claim)
{
    return table->row.end_ns != 0 && strcmp(table->row.owner, claim->owner) == 0 &&
           (claim->token == 0 || claim->token == table->row.token);
}

static enum hf_status try_once(struct toy_store *store, const struct hf_claim *claim,
                               struct hf_grant *grant, struct hf_error *err)
{
    const struct hf_host *host = store->base.host;
    struct table table;
    char left[32];

    grant->sent_at_ns = host->now_ns();
    table = find(store, claim->name);
    if (table.fd < 0)
        return broken(store, err);
    if (table.row.end_ns != 0) {
        (void)put(&table, false);
        (void)hf__format_duration(left, sizeof left,
                                  (table.row.end_ns - host->now_ns()) / HF__NS_PER_MS);
        return hf__fail_lock(err, HF_BUSY, claim->name, store->path,
                             " is held by %s, for another %s", table.row.label, left);
    }
    (void)snprintf(table.row.owner, sizeof table.row.owner, "%s", claim->owner);
    (void)snprintf(table.row.label, sizeof table.row.label, "%s",
                   claim->label != NULL ? claim->label : "");
    (void)hf__token_next(table.row.token, host->wall_us(), 0, &table.row.token);
    table.row.ttl_ms = claim->ttl_ms;
    table.row.end_ns = host->now_ns() + claim->ttl_ms * HF__NS_PER_MS;
    grant->token = table.row.token;
    return put(&table, true) ? hf__ok(err) : broken(store, err);
}

static enum hf_status toy_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                                  struct hf_grant *grant, struct hf_error *err)
{
    struct toy_store *store = (struct toy_store *)base;
    const struct hf__patience patience = {.deadline_ns = HF_NEVER, .cancel_fd = claim->cancel_fd};
    struct hf__wait_queue wait_queue;

    hf__wait_queue_init(&wait_queue, claim->wait_until_ns);
    for (;;) {
        enum hf_status status = try_once(store, claim, grant, err);
        int64_t now_ns = base->host->now_ns();
        const struct hf__wait_answer answer = {.status = status, .look_ns = now_ns + LOOK_NS};
        struct hf__wait_step step = hf__wait_queued(&wait_queue, &answer, now_ns, 0);

        if (step.next == HF__WAIT_RETURN)
            return status;
        if (hf__patience_pause(&patience, step.until_ns) == HF__WAITED_CANCELLED)
            return hf__fail_lock(err, HF_CANCELLED, claim->name, store->path,
                                 ": cancelled while waiting");
    }
}

static enum hf_status lost(const struct toy_store *store, const struct hf_claim *claim,
                           struct hf_error *err)
{
    return hf__fail_lock(err, HF_LOST, claim->name, store->path, " is not ours any more");
}

static enum hf_status toy_renew(struct hf_store_base *base, const struct hf_claim *claim,
                                struct hf_grant *grant, struct hf_error *err)
{
    struct toy_store *store = (struct toy_store *)base;
    struct table table;

    grant->sent_at_ns = base->host->now_ns();
    table = find(store, claim->name);
    if (table.fd < 0)
        return broken(store, err);
    if (!holds(&table, claim)) {
        grant->loss = table.row.end_ns != 0 ? HF_LOSS_TAKEN : HF_LOSS_EXPIRED;
        (void)put(&table, false);
        return lost(store, claim, err);
    }
    if (claim->ttl_ms != 0) {
        table.row.ttl_ms = claim->ttl_ms;
        table.row.end_ns = base->host->now_ns() + claim->ttl_ms * HF__NS_PER_MS;
    }
    grant->ttl_ms = table.row.ttl_ms;
    grant->remaining_ms = (table.row.end_ns - grant->sent_at_ns) / HF__NS_PER_MS;
    return put(&table, claim->ttl_ms != 0) ? hf__ok(err) : broken(store, err);
}

static enum hf_status toy_release(struct hf_store_base *base, const struct hf_claim *claim,
                                  struct hf_error *err)
{
    struct toy_store *store = (struct toy_store *)base;
    struct table table = find(store, claim->name);
    bool held;

    if (table.fd < 0)
        return broken(store, err);
    held = holds(&table, claim);
    if (held)
        table.row.end_ns = 0;
    if (!put(&table, held))
        return broken(store, err);
    return held ? hf__ok(err) : lost(store, claim, err);
}

static bool fits(const struct hf_query *query, const struct row *row)
{
    return query->exact ? strcmp(row->name, query->name) == 0
                        : strncmp(row->name, query->name, strlen(query->name)) == 0;
}

static enum hf_status toy_list(struct hf_store_base *base, const struct hf_query *query,
                               hf_list_fn *fn, void *data, struct hf_error *err)
{
    struct toy_store *store = (struct toy_store *)base;
    int fd = open_table(store);
    int64_t now_ns = base->host->now_ns();
    bool go_on = true;
    struct row row;

    if (fd < 0)
        return broken(store, err);
    for (off_t at = 0; go_on && pread(fd, &row, sizeof row, at) == sizeof row;
         at += (off_t)sizeof row) {
        struct hf_lock_info info = {.size = sizeof info,
                                    .name = row.name,
                                    .label = row.label,
                                    .token = row.token,
                                    .remaining_ms = (row.end_ns - now_ns) / HF__NS_PER_MS,
                                    .age_ms = -1,
                                    .held = true};

        if (row.end_ns > now_ns && fits(query, &row))
            go_on = fn(&info, data);
    }
    (void)close(fd);
    return hf__ok(err);
}

static enum hf_status toy_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                               struct hf_store_base **out, struct hf_error *err);

static void toy_close(struct hf_store_base *base, bool forked)
{
    (void)forked;
    free(base);
}

static const char *const schemes[] = {"toy", NULL};
static const struct hf_store_ops ops = {.size = sizeof ops,
                                        .schemes = schemes,
                                        .features = HF_FEATURE_RENEW_TTL,
                                        .open = toy_open,
                                        .close = toy_close,
                                        .acquire = toy_acquire,
                                        .renew = toy_renew,
                                        .release = toy_release,
                                        .list = toy_list};

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = HF_STORE_ABI, .ops = &ops};

    return &plugin;
}

static enum hf_status toy_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                               struct hf_store_base **out, struct hf_error *err)
{
    struct toy_store *store = calloc(1, sizeof *store);

    (void)deadline_ns;
    if (store == NULL)
        return hf__nomem(err);
    store->base.ops = &ops;
    store->base.host = host;
    (void)snprintf(store->path, sizeof store->path, "%s", hf__url_rest(url, "toy"));
    *out = &store->base;
    return hf__ok(err);
}
