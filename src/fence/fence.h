/* fence.h - inside the file fence: its view of the file system, the sidecar, the record in it.
 *
 * The sidecar .NAME.fence is a small text file: three slots of one record each, then a line per
 * reset. A new record goes into the slot after the newest one, so that the last record that is
 * known to be durable is never overwritten, whatever a crash does to the one being written. */
#ifndef HF_FENCE_FENCE_H
#define HF_FENCE_FENCE_H

#include "base/base.h"
#include "core/fence.h"

#include <holdfast/fence.h>
#include <sys/stat.h>
#include <sys/types.h>

enum {
    HF__FENCE_SLOT_SIZE = 1024,
    HF__FENCE_SLOTS = 3,
    HF__FENCE_LOG_AT = 4096,   /* where the lines about resets start */
    HF__FENCE_NAME_SIZE = 256, /* a file name in the directory, with NUL */
    HF__FENCE_BASE_MAX = 225   /* longest NAME: room for our additions */
};

/* The system calls of the fence, so that tests can stop it before each of them and can take the
 * power away from a simulated disk. All return >= 0, or -errno; none blocks but sync and
 * sleep_ns. */
struct hf__fence_io {
    int (*open_dir)(const struct hf__fence_io *io, const char *path);
    int (*open)(const struct hf__fence_io *io, int dir, const char *name, int flags, mode_t mode);
    int (*close)(const struct hf__fence_io *io, int fd);
    int (*stat)(const struct hf__fence_io *io, int dir, const char *name, struct stat *out);
    int (*stat_fd)(const struct hf__fence_io *io, int fd, struct stat *out);
    ssize_t (*read_link)(const struct hf__fence_io *io, int dir, const char *name, char *out,
                         size_t size);
    ssize_t (*pread)(const struct hf__fence_io *io, int fd, void *buf, size_t len, off_t at);
    ssize_t (*pwrite)(const struct hf__fence_io *io, int fd, const void *buf, size_t len, off_t at);
    int (*truncate)(const struct hf__fence_io *io, int fd, off_t size);
    /* Owner as far as it is allowed, then mode. */
    int (*set_attributes)(const struct hf__fence_io *io, int fd, const struct stat *like);
    int (*sync)(const struct hf__fence_io *io, int fd, bool data_only);
    /* Gives an open file a name; never replaces one. from: the name it has, NULL if it has none. */
    int (*link)(const struct hf__fence_io *io, int dir, int fd, const char *from, const char *to);
    int (*rename)(const struct hf__fence_io *io, int dir, const char *from, const char *to);
    int (*unlink)(const struct hf__fence_io *io, int dir, const char *name);
    int (*try_lock)(const struct hf__fence_io *io, int fd); /* exclusive; -EAGAIN: taken */
    void (*sleep_ns)(const struct hf__fence_io *io, int64_t ns);
};

extern const struct hf__fence_io hf__fence_system_io; /* the real one: io.c */

/* One append that may be half done. */
struct hf__fence_pending {
    uint64_t offset; /* the file's size before it */
    uint64_t len;    /* 0: none */
    uint64_t hash;   /* of the bytes */
};

struct hf__fence_record {
    uint64_t seq;
    struct hf_fence_mark mark;
    struct hf__fence_pending pending;
};

/* record.c: pure. */
void hf__fence_record_encode(char out[HF__FENCE_SLOT_SIZE], const struct hf__fence_record *record);
bool hf__fence_record_decode(const char in[HF__FENCE_SLOT_SIZE], struct hf__fence_record *record);
/* The newest valid record of the slots; false if none is valid. *unsettled: it says that an append
 * is done, and may not be on the disk yet; the announcement before it would then count again. */
bool hf__fence_record_newest(const char *slots, size_t len, struct hf__fence_record *record,
                             bool *unsettled);

/* A file under its fence. Zeroed descriptors are -1 when closed. */
struct hf__fence_file {
    const struct hf__fence_io *io;
    const char *path; /* as the caller said it, for error texts */
    int dir;
    int sidecar; /* -1 until locked */
    char name[HF__FENCE_NAME_SIZE];
    char sidecar_name[HF__FENCE_NAME_SIZE];
    struct hf__fence_record record; /* what the sidecar says, once locked */
    bool unsettled;                 /* and has to be saved before the file is replaced */
};

/* sidecar.c */

/* Finds the directory and the name behind path; opens no sidecar. Ended by hf__fence_close. */
enum hf_status hf__fence_open(struct hf__fence_file *file, const struct hf__fence_io *io,
                              const char *path, struct hf_error *err);
void hf__fence_close(struct hf__fence_file *file);
/* Opens the sidecar, creating it if need be, and locks it. */
enum hf_status hf__fence_lock(struct hf__fence_file *file, int64_t wait_ms, struct hf_error *err);
/* Reads the newest record of the locked sidecar; HF_CORRUPT with the remedy. */
enum hf_status hf__fence_load(struct hf__fence_file *file, struct hf_error *err);
/* Writes file->record as the next one. durable: on return it survives loss of power. */
enum hf_status hf__fence_save(struct hf__fence_file *file, bool durable, struct hf_error *err);
/* Locks, loads, takes back a half-done append, decides, raises. The sidecar stays locked. */
enum hf_status hf__fence_pass(struct hf__fence_file *file, const struct hf_fence_pass *pass,
                              struct hf_error *err);
/* "cannot WHAT PATH: reason", with the status that fits the errno. */
enum hf_status hf__fence_io_fail(struct hf_error *err, ssize_t rc, const char *what,
                                 const char *path);

ssize_t hf__fence_write_all(const struct hf__fence_io *io, int fd, const char *data, size_t len,
                            off_t at);

/* file.c */

/* A new file in the directory: without a name if the file system can do that (name is ""), else
 * under a temporary one. */
enum hf_status hf__fence_spool_open(struct hf__fence_file *file, int *out,
                                    char name[HF__FENCE_NAME_SIZE], mode_t mode,
                                    struct hf_error *err);

/* append.c */

/* Takes back the pending append of file->record if it is half done; clears it in the record,
 * which the caller must save. */
enum hf_status hf__fence_recover(struct hf__fence_file *file, struct hf_error *err);

/* admit.c */

/* pass->issuer_url, if the caller's struct is so new. */
const char *hf__fence_url(const struct hf_fence_pass *pass);
/* "2026-11-15T21:40:02Z"; "an unknown time" for 0. */
void hf__fence_time(char *out, size_t size, int64_t wall_us);

/* The public calls over any io: file.c, append.c, reset.c. */
enum hf_status hf__fence_enter(const struct hf__fence_io *io, const char *path,
                               const struct hf_fence_pass *pass, struct hf_error *err);
/* Where data comes from: from memory, or from fd if that is >= 0. */
struct hf__fence_source {
    const void *data;
    size_t len;
    int fd;
};
enum hf_status hf__fence_write(const struct hf__fence_io *io, const char *path,
                               const struct hf_fence_pass *pass,
                               const struct hf__fence_source *source, struct hf_error *err);
enum hf_status hf__fence_append(const struct hf__fence_io *io, const char *path,
                                const struct hf_fence_pass *pass, const void *data, size_t len,
                                struct hf_error *err);
enum hf_status hf__fence_reset(const struct hf__fence_io *io, const char *path, uint64_t token,
                               const char *issuer, const char *reason, struct hf_error *err);

#endif /* HF_FENCE_FENCE_H */
