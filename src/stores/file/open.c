/* open.c - the slot file: finding this boot's, or making it. */
#include "stores/file/open.h"
#include "base/backoff.h"
#include "base/base.h"
#include "core/token.h"
#include "stores/file/convert.h"
#include "stores/file/dir.h"
#include "stores/file/errors.h"
#include "stores/file/floor.h"
#include "stores/file/layout.h"
#include "stores/file/location.h"
#include "stores/file/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define NEW_NAME  "new-slots"
#define NAME_SIZE 48

#define PAUSE_MIN_NS 200000 /* between two tries to have the directory alone */
#define PAUSE_MAX_NS 10000000
#define TORN_TRIES   20           /* to read a header that others write */
#define CREATE_TRIES 8            /* to make a file that others discard again */
#define CONVERT_NS   HF__NS_PER_S /* how long to wait for others before a file is converted */

static const char magic[8] = {'h', 'o', 'l', 'd', 'f', 'a', 's', 't'};

static enum hf_status create(struct file_store *store, const char *name, int64_t deadline_ns,
                             struct hf_error *err);
static enum hf_status convert(struct file_store *store, const char *name, int64_t deadline_ns,
                              struct hf_error *err);
static enum hf_status other_boot(const struct file_store *store, struct hf_error *err);

/* Reads the header once. HF_CORRUPT: it is damaged, or somebody was writing it. */
static enum hf_status try_header(struct file_store *store, const char *name,
                                 struct file_header *out, struct hf_error *err)
{
    ssize_t got = store->sys->pread(store->slots_fd, out, sizeof *out, 0);

    if (got < 0)
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown, ": cannot read %s: %s", name,
                             strerror(errno));
    if (got != sizeof *out || !hf__sum_ok(out) || memcmp(out->magic, magic, sizeof magic) != 0)
        return hf__error_damaged(store, "the slot file is damaged", false, err);
    return HF_OK;
}

/* Whoever raises the promise writes the header, and a read may meet it halfway. So what looks
 * damaged is read again with the lock of the writers held; a client that only reads cannot have
 * that, and tries a few times. */
static enum hf_status read_header(struct file_store *store, const char *name, int64_t deadline_ns,
                                  struct file_header *out, struct hf_error *err)
{
    enum hf_status status = try_header(store, name, out, err);
    int fd;

    if (store->readonly) {
        for (int i = 0; i < TORN_TRIES && status == HF_CORRUPT; i++) {
            hf__sleep_ns(HF__NS_PER_MS);
            status = try_header(store, name, out, err);
        }
        return status;
    }
    if (status != HF_CORRUPT)
        return status;
    status = hf__floor_lock(store, deadline_ns, &fd, err);
    if (status == HF_OK) {
        status = try_header(store, name, out, err);
        (void)close(fd);
    }
    return status;
}

static enum hf_status damaged(const struct file_store *store, struct hf_error *err)
{
    return hf__error_damaged(store, "the slot file is damaged", false, err);
}

/* What can be told by the file itself: it is whole, and no copy. */
static enum hf_status check_file(struct file_store *store, const struct file_header *header,
                                 struct hf_error *err)
{
    bool mapped = header->words == WORDS_MAPPED;
    struct stat st;

    if (fstat(store->slots_fd, &st) != 0 || st.st_size < (off_t)PAGE_SIZE * PAGES_FIRST ||
        (!mapped && header->words != WORDS_GUARDED))
        return damaged(store, err);
    if (header->inode != (uint64_t)st.st_ino)
        return hf__error_damaged(store, "the slot file is a copy of another one", false, err);
    /* What was never written has no room on the disk, and a store into it may be a signal. */
    if (mapped && (off_t)st.st_blocks * 512 < st.st_size)
        return hf__error_damaged(store, "the slot file has holes", false, err);
    if (mapped && !hf__cas_able())
        return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->shown,
                             " was made by a machine that can do more than this one");
    atomic_store(&store->page_count, (unsigned)(st.st_size / PAGE_SIZE));
    return hf__map_open(store, mapped, err);
}

static enum hf_status other_version(const struct file_store *store, uint32_t version,
                                    struct hf_error *err)
{
    return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->shown,
                         " was made by another version of holdfast (format %u, ours is "
                         "%d): end its users first",
                         version, FORMAT_VERSION);
}

static enum hf_status check_header(struct file_store *store, const char *name, int64_t deadline_ns,
                                   struct file_header *header, struct hf_error *err)
{
    enum hf_status status = read_header(store, name, deadline_ns, header, err);

    if (status != HF_OK)
        return status;
    if (header->version != FORMAT_VERSION || header->page_size != PAGE_SIZE)
        return other_version(store, header->version, err);
    if (strcmp(header->boot_id, store->boot_id) != 0)
        return damaged(store, err);
    if (header->time_namespace != store->sys->time_namespace())
        return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->shown,
                             " is used from another time namespace, whose clock differs: "
                             "deadlines would not agree");
    if (header->promise > HF__TOKEN_MAX || header->base > HF__TOKEN_MAX + 1)
        return damaged(store, err);
    store->token_base = header->base;
    atomic_store(&store->promise, header->promise);
    return check_file(store, header, err);
}

/* The floor must be readable and cover the header's promise; if it is gone, the header knows it. */
static enum hf_status check_floor(struct file_store *store, int64_t deadline_ns,
                                  struct hf_error *err)
{
    uint64_t floor;
    int fd;
    enum hf_status status = hf__floor_read(store, &floor, err);

    if (status != HF_OK || floor >= atomic_load(&store->promise) || store->readonly)
        return status;
    status = hf__floor_lock(store, deadline_ns, &fd, err);
    if (status != HF_OK)
        return status;
    status = hf__floor_read(store, &floor, err);
    if (status == HF_OK && floor < atomic_load(&store->promise))
        status = hf__floor_write(store, atomic_load(&store->promise), err);
    (void)close(fd);
    return status;
}

/* Opens the slot file, which is made if need be. Readonly, slots_fd stays -1 if there is none. */
static enum hf_status open_file(struct file_store *store, const char *name, int64_t deadline_ns,
                                struct hf_error *err)
{
    int flags = store->readonly ? O_RDONLY | O_NONBLOCK : O_RDWR; /* should it be a FIFO */
    struct stat st;
    uint64_t floor;
    enum hf_status status;

    for (int tries = 0;; tries++) {
        store->slots_fd =
            store->sys->openat(store->dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0);
        if (store->slots_fd >= 0)
            break;
        if (errno == ENOENT && store->readonly)
            return hf__floor_read(store, &floor, err); /* damage is worth telling */
        if (errno != ENOENT)
            return hf__fail_lock(err, hf__error_status(errno), NULL, store->shown,
                                 ": cannot open %s: %s", name, strerror(errno));
        if (tries == CREATE_TRIES)
            return other_boot(store, err);
        status = create(store, name, deadline_ns, err);
        if (status != HF_OK)
            return status;
    }
    if (fstat(store->slots_fd, &st) != 0 || !S_ISREG(st.st_mode) || !hf__dir_trusts(store, &st))
        return hf__fail_lock(err, HF_DENIED, NULL, store->shown,
                             ": %s is not ours alone to write: check owner and mode", name);
    return HF_OK;
}

enum hf_status hf__slots_open(struct file_store *store, int64_t deadline_ns, struct hf_error *err)
{
    struct file_header header = {.version = 0};
    char name[NAME_SIZE];
    enum hf_status status;

    if (!store->sys->boot_id(store->boot_id))
        return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->shown,
                             ": the system does not reveal its boot id: is /proc mounted?");
    (void)snprintf(name, sizeof name, SLOTS_PREFIX "%s", store->boot_id);
    status = open_file(store, name, deadline_ns, err);
    if (status != HF_OK || store->slots_fd < 0)
        return status;
    status = check_header(store, name, deadline_ns, &header, err);
    if (status == HF_UNSUPPORTED && hf__convertible(&header) && !store->readonly) {
        status = convert(store, name, deadline_ns, err);
        if (status == HF_OK)
            status = check_header(store, name, deadline_ns, &header, err);
    }
    if (status == HF_OK)
        status = check_floor(store, deadline_ns, err);
    return status == HF_OK ? hf__location_note(store, name, err) : status;
}

static enum hf_status other_boot(const struct file_store *store, struct hf_error *err)
{
    return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->shown,
                         " is in use by a process with another boot id: a container with a "
                         "boot id of its own cannot share it");
}

/* Files of another boot are worth nothing, but somebody who disagrees about which boot this is may
 * be using them: HF_BUSY. Needs the floor's lock; takes and keeps LOCK_EX if something was
 * discarded. */
static enum hf_status discard_others(struct file_store *store, const char *name, uint64_t floor,
                                     struct hf_error *err)
{
    bool others;
    enum hf_status status = hf__dir_has_slots(store, name, &others, err);

    if (status != HF_OK || !others)
        return status;
    if (floor == 0)
        return hf__error_damaged(store, "the token floor is missing", true, err);
    if (flock(store->dir_fd, LOCK_EX | LOCK_NB) != 0)
        return HF_BUSY;
    return hf__dir_discard(store, err);
}

/* A new file under a name of its own, and the header it is to have. -1 with errno. */
static int make_file(struct file_store *store, struct file_header *header)
{
    struct stat st;
    int fd;

    (void)unlinkat(store->dir_fd, NEW_NAME, 0);
    fd =
        store->sys->openat(store->dir_fd, NEW_NAME,
                           O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, hf__dir_mode(store));
    if (fd < 0)
        return -1;
    (void)fchmod(fd, hf__dir_mode(store)); /* whatever the umask */
    memcpy(header->magic, magic, sizeof magic);
    memcpy(header->boot_id, store->boot_id, sizeof store->boot_id);
    header->version = FORMAT_VERSION;
    header->page_size = PAGE_SIZE;
    header->time_namespace = store->sys->time_namespace();
    header->inode = fstat(fd, &st) == 0 ? (uint64_t)st.st_ino : 0;
    header->words = hf__map_allowed(store, fd) ? WORDS_MAPPED : WORDS_GUARDED;
    return fd;
}

static enum hf_status give_up_file(struct file_store *store, int error, struct hf_error *err)
{
    (void)unlinkat(store->dir_fd, NEW_NAME, 0); /* gives back what room it took */
    return hf__fail_lock(err, hf__error_status(error), NULL, store->shown,
                         ": cannot create the slot file: %s", strerror(error));
}

static enum hf_status write_new(struct file_store *store, const char *name, uint64_t base,
                                uint64_t promise, struct hf_error *err)
{
    size_t size = (size_t)PAGE_SIZE * PAGES_FIRST;
    char *image = calloc(1, size);
    struct file_header header = {.base = base, .promise = promise};
    enum hf_status status = HF_OK;
    bool written = false;
    int fd;

    if (image == NULL)
        return hf__nomem(err);
    fd = make_file(store, &header);
    if (fd >= 0) {
        hf__sum_set(&header);
        memcpy(image, &header, sizeof header);
        /* Every block is written, not only promised: they are to be mapped. */
        written = hf__write_all(store->sys, fd, image, size, 0) &&
                  store->sys->renameat(store->dir_fd, NEW_NAME, store->dir_fd, name) == 0;
    }
    if (!written)
        status = give_up_file(store, errno, err);
    free(image);
    if (fd >= 0)
        (void)close(fd);
    return status;
}

/* The directory for ourselves, for a moment: HF_UNSUPPORTED if somebody uses it. */
static enum hf_status lock_alone(struct file_store *store, int64_t deadline_ns,
                                 struct hf_error *err)
{
    int64_t until_ns = store->base.host->now_ns() + CONVERT_NS;

    if (store->alone)
        return HF_OK;
    (void)flock(store->dir_fd, LOCK_UN); /* as do others who come to convert it */
    if (hf__dir_lock(store, LOCK_EX, until_ns < deadline_ns ? until_ns : deadline_ns, NULL) ==
        HF_OK)
        return HF_OK;
    return other_version(store, FORMAT_BEFORE, err);
}

/* Reads it again with nobody else there: it may have been converted meanwhile. */
static enum hf_status convert_alone(struct file_store *store, const char *name, int64_t deadline_ns,
                                    struct hf_error *err)
{
    struct file_header header;
    enum hf_status status;
    int fd;

    (void)close(store->slots_fd);
    status = open_file(store, name, deadline_ns, err);
    if (status == HF_OK)
        status = read_header(store, name, deadline_ns, &header, err);
    if (status != HF_OK || !hf__convertible(&header))
        return status;
    fd = make_file(store, &header);
    if (fd < 0)
        return give_up_file(store, errno, err);
    status = hf__convert(store, fd, &header, err);
    if (status != HF_OK)
        (void)unlinkat(store->dir_fd, NEW_NAME, 0);
    else if (store->sys->renameat(store->dir_fd, NEW_NAME, store->dir_fd, name) != 0)
        status = give_up_file(store, errno, err);
    (void)close(store->slots_fd);
    store->slots_fd = fd;
    return status;
}

/* Makes a file of our format out of the open one. */
static enum hf_status convert(struct file_store *store, const char *name, int64_t deadline_ns,
                              struct hf_error *err)
{
    enum hf_status status = lock_alone(store, deadline_ns, err);
    enum hf_status again = HF_OK;

    if (status == HF_OK)
        status = convert_alone(store, name, deadline_ns, err);
    if (!store->alone) {
        (void)flock(store->dir_fd, LOCK_UN);
        again = hf__dir_lock(store, LOCK_SH, deadline_ns, status == HF_OK ? err : NULL);
    }
    return status != HF_OK ? status : again;
}

/* Makes the file unless another process was faster. HF_BUSY: the directory is in use by others, and
 * must be nobody's for a moment. */
static enum hf_status create_once(struct file_store *store, const char *name, int64_t deadline_ns,
                                  struct hf_error *err)
{
    int64_t wall_us = store->base.host->wall_us();
    struct stat st;
    uint64_t floor;
    uint64_t promise;
    int lock_fd;
    enum hf_status status = hf__floor_lock(store, deadline_ns, &lock_fd, err);

    if (status != HF_OK)
        return status;
    if (fstatat(store->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        goto out;
    status = hf__floor_read(store, &floor, err);
    if (status != HF_OK)
        goto out;
    status = discard_others(store, name, floor, err);
    if (status == HF_OK && floor == 0)
        status = hf__dir_sync_parents(store, err); /* we may have just made it */
    if (status != HF_OK)
        goto out;
    promise = floor;
    if (wall_us > 0 && (uint64_t)wall_us > promise)
        promise = (uint64_t)wall_us;
    promise = promise <= HF__TOKEN_MAX - HOUR_US ? promise + HOUR_US : HF__TOKEN_MAX;
    status = hf__floor_write(store, promise, err);
    if (status == HF_OK)
        status = write_new(store, name, floor + 1, promise, err);
out:
    (void)close(lock_fd);
    return status;
}

/* After a reboot all who use the store come at once. Whoever discards what is left of the last boot
 * needs the directory for itself, so nobody keeps it, or the floor's lock, while it waits. */
static enum hf_status create(struct file_store *store, const char *name, int64_t deadline_ns,
                             struct hf_error *err)
{
    struct hf__backoff tries = {.first_ns = PAUSE_MIN_NS, .most_ns = PAUSE_MAX_NS};
    enum hf_status status;
    int64_t now_ns;
    uint32_t dice;

    if (!store->alone)
        (void)flock(store->dir_fd, LOCK_UN);
    while ((status = create_once(store, name, deadline_ns, err)) == HF_BUSY &&
           (now_ns = store->base.host->now_ns()) < deadline_ns) {
        store->base.host->random(&dice, sizeof dice);
        hf__sleep_ns(hf__backoff_failed(&tries, now_ns, dice) - now_ns);
    }
    if (status == HF_BUSY)
        return other_boot(store, err);
    if (status != HF_OK || store->alone)
        return status;
    (void)flock(store->dir_fd, LOCK_UN);
    return hf__dir_lock(store, LOCK_SH, deadline_ns, err);
}
