/* shim.h - what cgo cannot say by itself: lists of names, structs with strings in them, and what is
 * called back in C. */
#ifndef HOLDFAST_GO_SHIM_H
#define HOLDFAST_GO_SHIM_H

#include <holdfast.h>
#include <holdfast/elect.h>
#include <holdfast/once.h>
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

/* What is wanted: one of so many names, or all of them. */
struct want {
    size_t count;
    bool all, no_keeper, spread;
    uint32_t ttl_ms;
    int64_t wait_ms;
    int cancel_fd;
};

/* Go looks for pointers of its own in all that is a pointer, which costs as much as a mutex. */
struct taken {
    uintptr_t lease;
    uint64_t token;
    size_t which; /* of the names */
};

/* NULL if it is empty, which is what "not given" is to the library. A NUL becomes another control
 * character, which the library takes no more in a name: it must not become another name. What is
 * too long is cut; size is more than the library takes. */
static char *text(_GoString_ from, char *to, size_t size)
{
    size_t len = _GoStringLen(from) < size ? _GoStringLen(from) : size - 1;
    char *nul;

    memcpy(to, _GoStringPtr(from), len);
    to[len] = '\0';
    while ((nul = memchr(to, '\0', len)) != NULL)
        *nul = '\1';
    return len > 0 ? to : NULL;
}

/* names: a line each, so that a line end in one is left over, and refused. taken: room for one, or
 * for all. */
static enum hf_status take(uintptr_t at, _GoString_ names, _GoString_ label, struct want want,
                           struct taken *taken, struct hf_error *err)
{
    struct hf_store *store = (struct hf_store *)at;
    char lines[(HF_SEVERAL_MAX + 1) * (HF_NAME_MAX + 2)], labelled[HF_LABEL_MAX + 4];
    char *rest = text(names, lines, sizeof lines);
    const char *list[HF_SEVERAL_MAX + 1];
    struct hf_lease *leases[HF_SEVERAL_MAX + 1];
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = want.ttl_ms,
                                         .wait_ms = want.wait_ms,
                                         .label = text(label, labelled, sizeof labelled),
                                         .cancel_fd = want.cancel_fd,
                                         .no_keeper = want.no_keeper,
                                         .spread = want.spread};
    enum hf_status status;
    size_t i;

    for (i = 0; i < want.count && i <= HF_SEVERAL_MAX; i++) /* of one too many the library speaks */
        list[i] = i + 1 < want.count ? strsep(&rest, "\n") : rest;
    if (want.all)
        status = hf_acquire_all(store, list, i, &options, leases, err);
    else if (want.count == 1)
        status = hf_acquire(store, rest, &options, leases, err);
    else
        status = hf_acquire_any(store, list, i, &options, leases, &taken->which, err);
    for (i = 0; status == HF_OK && i < (want.all ? want.count : 1); i++) {
        taken[i].lease = (uintptr_t)leases[i];
        taken[i].token = hf_lease_token(leases[i]);
    }
    return status;
}

static enum hf_status release(uintptr_t lease, enum hf_loss *loss, struct hf_error *err)
{
    return hf_release_why((struct hf_lease *)lease, loss, err);
}

/* What the store tells, copied; freed by free_rows. */
struct row {
    struct row *next;
    struct hf_record record;
    char bytes[]; /* its key and its value */
};

static bool add_record(const struct hf_record *record, void *data)
{
    size_t key_size = strlen(record->key) + 1;
    struct row *row = malloc(sizeof *row + key_size + record->value_len), **rows = data;

    if (row == NULL)
        return false;
    row->record = *record;
    row->record.key = memcpy(row->bytes, record->key, key_size);
    row->record.value = memcpy(row->bytes + key_size, record->value, record->value_len);
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
        free(row);
    }
}

/* The records of a lock whose keys start with prefix, or who leads. */
static enum hf_status look(struct hf_store *store, bool leader, const char *name,
                           const char *prefix, struct row **rows, struct hf_error *err)
{
    return leader ? hf_leader(store, name, add_leader, rows, err)
                  : hf_record_list(store, name, prefix, add_record, rows, err);
}

/* What has strings in it, Go passes on by value only. */
static enum hf_status break_hold(struct hf_store *store, const char *name, uint64_t token,
                                 struct hf_break_options options, struct hf_error *err)
{
    return hf_break(store, name, token, &options, NULL, err);
}

static enum hf_status open_once(struct hf_store *store, const char *key,
                                struct hf_once_options options, struct hf_once **out,
                                struct hf_error *err)
{
    return hf_once_open(store, key, &options, out, err);
}

#endif /* HOLDFAST_GO_SHIM_H */
