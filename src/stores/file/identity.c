/* identity.c - who a directory is: a random text kept in it, which a reboot, a bind mount and
 * another path do not change. */
#include "base/base.h"
#include "stores/file/dir.h"
#include "stores/file/errors.h"
#include "stores/file/operations.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define IDENTITY_NAME "identity"
enum { RANDOM_BYTES = 16, ID_LEN = 2 * RANDOM_BYTES };

static enum hf_status identity_fail(const struct file_store *store, const char *what,
                                    struct hf_error *err)
{
    return hf__fail_lock(err, hf__error_status(errno), NULL, store->shown,
                         ": cannot %s its identity: %s", what, strerror(errno));
}

/* HF_BUSY: there is none. */
static enum hf_status read_id(struct file_store *store, char out[ID_LEN + 1], struct hf_error *err)
{
    unsigned char bytes[RANDOM_BYTES];
    ssize_t got = hf__read_small(store->sys, store->dir_fd, IDENTITY_NAME, out, ID_LEN);

    if (got < 0)
        return errno == ENOENT ? HF_BUSY : identity_fail(store, "read", err);
    out[got] = '\0';
    if (got != ID_LEN || !hf__hex_decode(bytes, sizeof bytes, out))
        return hf__error_damaged(store, "its identity is damaged", false, err);
    return HF_OK;
}

/* It gets its name only when it is whole and durable, and never replaces one. */
static enum hf_status make_id(struct file_store *store, struct hf_error *err)
{
    unsigned char bytes[RANDOM_BYTES];
    char id[ID_LEN + 1];
    char temp[sizeof IDENTITY_NAME + ID_LEN + 1];
    enum hf_status status = HF_OK;
    int fd;

    hf__random(bytes, sizeof bytes);
    hf__hex_encode(id, bytes, sizeof bytes);
    (void)snprintf(temp, sizeof temp, IDENTITY_NAME ".%s", id);
    hf__random(bytes, sizeof bytes); /* the name of the file tells nothing */
    hf__hex_encode(id, bytes, sizeof bytes);
    fd = store->sys->openat(store->dir_fd, temp,
                            O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                            hf__dir_mode(store));
    if (fd < 0)
        return identity_fail(store, "create", err);
    (void)fchmod(fd, hf__dir_mode(store)); /* whatever the umask */
    if (!hf__write_all(store->sys, fd, id, ID_LEN, 0) || store->sys->fsync(fd) != 0 ||
        (linkat(store->dir_fd, temp, store->dir_fd, IDENTITY_NAME, 0) != 0 && errno != EEXIST) ||
        store->sys->fsync(store->dir_fd) != 0)
        status = identity_fail(store, "write", err);
    (void)close(fd);
    (void)unlinkat(store->dir_fd, temp, 0);
    return status;
}

enum hf_status hf__file_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                                 int64_t deadline_ns, struct hf_error *err)
{
    struct file_store *store = hf__file_of(base);
    char id[ID_LEN + 1];
    enum hf_status status;

    (void)deadline_ns;
    if (store->dir_fd < 0)
        return hf__fail_lock(err, HF_UNKNOWN, NULL, store->shown, ": there is no such store yet");
    status = read_id(store, id, err);
    if (status == HF_BUSY) {
        status = make_id(store, err);
        if (status == HF_OK)
            status = read_id(store, id, err);
    }
    if (status != HF_OK)
        return status;
    (void)snprintf(out, HF_IDENTITY_SIZE, "id:file:%s", id);
    return hf__ok(err);
}
