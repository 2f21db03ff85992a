/* floor.c - what must survive the loss of power: how far tokens may have gone.
 *
 * A one-line text file promises that no token above its number was given. It is replaced before a
 * token above it is given, by an hour's worth of microseconds at a time, so that this is rare.
 * After a reboot tokens start above the promise, whatever the clock says. `lock` serialises the
 * writers; the number in the file never goes down. */
#include "stores/file/floor.h"
#include "base/base.h"
#include "core/token.h"
#include "stores/file/blocker.h"
#include "stores/file/dir.h"
#include "stores/file/errors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FLOOR_NAME   "floor"
#define FLOOR_NEW    "floor.new"
#define FLOOR_SEED   0x666c6f6f72u
#define LINE_MAX_LEN 80

static enum hf_status floor_fail(const struct file_store *store, const char *what,
                                 struct hf_error *err)
{
    char doing[60];
    int error = errno;

    (void)snprintf(doing, sizeof doing, "%s the token floor", what);
    return hf__error_fail(store, doing, error, err);
}

static int format_line(char *out, size_t size, uint64_t promise)
{
    char number[24];

    (void)snprintf(number, sizeof number, "%" PRIu64, promise);
    return snprintf(out, size, "holdfast floor 1 %s %016" PRIx64 "\n", number,
                    hf__hash64(number, strlen(number), FLOOR_SEED));
}

enum hf_status hf__floor_read(struct file_store *store, uint64_t *out, struct hf_error *err)
{
    char line[LINE_MAX_LEN + 1];
    char expected[LINE_MAX_LEN + 1];
    char number[24];
    ssize_t got = hf__read_small(store->sys, store->dir_fd, FLOOR_NAME, line, LINE_MAX_LEN);

    *out = 0;
    if (got < 0)
        return errno == ENOENT ? HF_OK : floor_fail(store, "read", err);
    line[got] = '\0';
    if (sscanf(line, "holdfast floor 1 %23[0-9] ", number) == 1 && hf__parse_u64(number, out) &&
        *out > 0 && *out <= HF__TOKEN_MAX) {
        if (got == format_line(expected, sizeof expected, *out) && strcmp(line, expected) == 0)
            return HF_OK;
    }
    return hf__error_damaged(store, "the token floor is damaged", true, err);
}

enum hf_status hf__floor_write(struct file_store *store, uint64_t promise, struct hf_error *err)
{
    const struct hf__file_sys *sys = store->sys;
    char line[LINE_MAX_LEN + 1];
    int len = format_line(line, sizeof line, promise);
    bool written;
    int fd;

    if (store->shared)
        (void)unlinkat(store->dir_fd, FLOOR_NEW, 0); /* another user may have been killed here */
    fd = sys->openat(store->dir_fd, FLOOR_NEW,
                     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, hf__dir_mode(store));
    if (fd < 0)
        return floor_fail(store, "create", err);
    (void)fchmod(fd, hf__dir_mode(store)); /* whatever the umask */
    written = hf__write_all(sys, fd, line, (size_t)len, 0) && sys->fsync(fd) == 0;
    if (!written) {
        enum hf_status status = floor_fail(store, "write", err);

        (void)close(fd);
        return status;
    }
    (void)close(fd);
    if (sys->renameat(store->dir_fd, FLOOR_NEW, store->dir_fd, FLOOR_NAME) != 0 ||
        sys->fsync(store->dir_fd) != 0)
        return floor_fail(store, "replace", err);
    return HF_OK;
}

static enum hf_status lock_fail(const struct file_store *store, int fd, struct hf_error *err)
{
    char who[96];

    if (err != NULL && (errno == EAGAIN || errno == EACCES) &&
        hf__blocker_name(fd, 0, who, sizeof who))
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown,
                             ": %s is stuck while raising the token floor: resume "
                             "or end it",
                             who);
    return floor_fail(store, "lock", err);
}

enum hf_status hf__floor_lock(struct file_store *store, int64_t deadline_ns, int *out,
                              struct hf_error *err)
{
    struct flock first = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int fd = hf__dir_create(store, "lock");

    if (fd < 0)
        return floor_fail(store, "lock", err);
    while (fcntl(fd, F_OFD_SETLK, &first) != 0) {
        bool taken = errno == EAGAIN || errno == EACCES || errno == EINTR;

        if (!taken || store->base.host->now_ns() >= deadline_ns) {
            enum hf_status status = lock_fail(store, fd, err);

            (void)close(fd);
            return status;
        }
        hf__sleep_ns(HF__NS_PER_MS);
    }
    *out = fd;
    return HF_OK;
}

/* How far to promise, with the floor's lock held, so that `token` is within. */
static uint64_t next_promise(const struct file_store *store, uint64_t token, uint64_t current)
{
    int64_t wall_us = store->base.host->wall_us();
    uint64_t promise = token > current ? token : current;

    if (wall_us > 0 && (uint64_t)wall_us > promise)
        promise = (uint64_t)wall_us;
    return promise <= HF__TOKEN_MAX - HOUR_US ? promise + HOUR_US : HF__TOKEN_MAX;
}

static enum hf_status read_header(struct file_store *store, struct file_header *out,
                                  struct hf_error *err)
{
    ssize_t got = store->sys->pread(store->slots_fd, out, sizeof *out, 0);

    if (got < 0)
        return floor_fail(store, "compare the slot file with", err);
    if (got != sizeof *out || !hf__sum_ok(out))
        return hf__error_damaged(store, "the slot file's header is damaged", false, err);
    return HF_OK;
}

/* Replaces the floor and then puts the promise into the slot file's header, where other processes
 * find it without asking the disk. */
static enum hf_status promise_more(struct file_store *store, struct file_header *header,
                                   uint64_t wanted, struct hf_error *err)
{
    uint64_t current;
    enum hf_status status = hf__floor_read(store, &current, err);

    if (status != HF_OK)
        return status;
    if (current < header->promise)
        current = header->promise;
    current = next_promise(store, wanted, current);
    status = hf__floor_write(store, current, err);
    if (status != HF_OK)
        return status;
    header->promise = current;
    hf__sum_set(header);
    if (!hf__write_all(store->sys, store->slots_fd, header, sizeof *header, 0))
        return floor_fail(store, "publish", err);
    return HF_OK;
}

/* Raises the floor until `wanted` is within the promise. What the header says is safe on disk. What
 * only the file says may be lost with the power: whoever wrote it failed, or was killed, before
 * its last fsync. */
static enum hf_status raise_floor(struct file_store *store, uint64_t wanted, int64_t deadline_ns,
                                  struct hf_error *err)
{
    struct file_header header;
    int fd = -1;
    enum hf_status status = hf__floor_lock(store, deadline_ns, &fd, err);

    if (status != HF_OK)
        return status;
    status = read_header(store, &header, err);
    if (status == HF_OK && wanted > header.promise)
        status = promise_more(store, &header, wanted, err);
    if (status == HF_OK)
        atomic_store(&store->promise, header.promise);
    (void)close(fd);
    return status;
}

enum hf_status hf__floor_admit(struct file_store *store, uint64_t token, int64_t deadline_ns,
                               struct hf_error *err)
{
    if (token <= atomic_load(&store->promise))
        return HF_OK;
    return raise_floor(store, token, deadline_ns, err);
}

bool hf__floor_is_near(const struct file_store *store, uint64_t token)
{
    return token <= HF__TOKEN_MAX - HOUR_US && token + HOUR_US / 2 > atomic_load(&store->promise);
}

void hf__floor_refill(struct file_store *store, uint64_t token)
{
    /* Half of what was promised is left: fine. Failing here costs nothing yet: the next token above
     * the promise will ask for it, and say what is wrong. So it does not wait either: whoever has
     * the lock is raising the floor already. */
    if (hf__floor_is_near(store, token))
        (void)raise_floor(store, token + HOUR_US / 2, 0, NULL);
}
