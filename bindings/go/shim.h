/* shim.h - what cgo cannot say by itself: structs with sizes, and what is called back in C. */
#ifndef HOLDFAST_GO_SHIM_H
#define HOLDFAST_GO_SHIM_H

#include <holdfast.h>
#include <holdfast/elect.h>
#include <holdfast/record.h>
#include <holdfast/several.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* To the library 0 means none: whoever closed stdin has one there then. */
static int new_event(void)
{
    int fd;

    while ((fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) == 0)
        continue;
    return fd;
}

static int is_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    return poll(&one, 1, 0) > 0;
}

static enum hf_status open_store(const char *url, int64_t wait_ms, int cancel_fd,
                                 struct hf_store **out, struct hf_error *err)
{
    struct hf_open_options options = {
        .size = sizeof options, .wait_ms = wait_ms, .cancel_fd = cancel_fd};

    return hf_open_waiting(url, &options, out, err);
}

/* What is wanted, without pointers, as Go may pass it on; one of the names, or all of them. */
struct want {
    size_t count;
    bool all, no_keeper, spread;
    uint32_t ttl_ms;
    int64_t wait_ms;
    int cancel_fd;
};

/* names: one after the other, each with its NUL. leases: room for as many; what is taken is at the
 * place of its name. */
static enum hf_status acquire(struct hf_store *store, const char *names, struct want want,
                              const char *label, struct hf_lease **leases, struct hf_error *err)
{
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = want.ttl_ms,
                                         .wait_ms = want.wait_ms,
                                         .label = label,
                                         .cancel_fd = want.cancel_fd,
                                         .no_keeper = want.no_keeper,
                                         .spread = want.spread};
    const char *list[HF_SEVERAL_MAX + 1]; /* with one too many, the library says so */
    struct hf_lease *one = NULL;
    size_t i, which = 0;
    enum hf_status status;

    for (i = 0; i < want.count && i <= HF_SEVERAL_MAX; i++, names += strlen(names) + 1)
        list[i] = names;
    if (want.all)
        return hf_acquire_all(store, list, i, &options, leases, err);
    status = hf_acquire_any(store, list, i, &options, &one, &which, err);
    if (status == HF_OK)
        leases[which] = one;
    return status;
}

struct given {
    enum hf_status status;
    enum hf_loss loss;
};

static struct given release(struct hf_lease *lease, struct hf_error *err)
{
    struct given given = {.loss = hf_lease_loss(lease)};

    given.status = hf_release(lease, err);
    return given;
}

/* What the store tells, copied; freed by free_rows. */
struct row {
    struct row *next;
    struct hf_record record;
};

static bool add_record(const struct hf_record *record, void *data)
{
    struct row *row = calloc(1, sizeof *row), **rows = data;

    if (row == NULL)
        return false;
    row->record = *record;
    row->record.key = strdup(record->key);
    row->record.value = malloc(record->value_len + 1);
    memcpy((void *)row->record.value, record->value, record->value_len);
    row->next = *rows;
    *rows = row;
    return true;
}

static void add_leader(const struct hf_leader *leader, void *data)
{
    struct hf_record record = {.token = leader->term,
                               .written_ms = leader->age_ms,
                               .until_ms = leader->remaining_ms,
                               .key = leader->label,
                               .value = leader->address,
                               .value_len = strlen(leader->address)};

    add_record(&record, data);
}

static void free_rows(struct row *row)
{
    for (struct row *next; row != NULL; row = next) {
        next = row->next;
        free((void *)row->record.key);
        free((void *)row->record.value);
        free(row);
    }
}

static enum hf_status break_hold(struct hf_store *store, const char *name, uint64_t token,
                                 const char *reason, bool now, struct hf_error *err)
{
    struct hf_break_options options = {.size = sizeof options, .reason = reason, .now = now};

    return hf_break(store, name, token, &options, NULL, err);
}

static enum hf_status leader(struct hf_store *store, const char *name, struct row **rows,
                             struct hf_error *err)
{
    return hf_leader(store, name, add_leader, rows, err);
}

static enum hf_status records(struct hf_store *store, const char *name, const char *prefix,
                              struct row **rows, struct hf_error *err)
{
    return hf_record_list(store, name, prefix, add_record, rows, err);
}

#endif /* HOLDFAST_GO_SHIM_H */
