/* sys.h - the system under the embedded store. */
#ifndef HF_STORES_FILE_SYS_H
#define HF_STORES_FILE_SYS_H

#include <holdfast.h>
#include <sys/types.h>

/* What the store asks of the system and a test may want to answer for: everything that can fail,
 * be cut off in the middle, or differ after a reboot. */
struct hf__file_sys {
    ssize_t (*pread)(int fd, void *buf, size_t len, off_t at);
    ssize_t (*pwrite)(int fd, const void *buf, size_t len, off_t at);
    int (*openat)(int dir, const char *name, int flags, mode_t mode);
    int (*fsync)(int fd);
    int (*renameat)(int from_dir, const char *from, int to_dir, const char *to);
    int (*linkat)(int from_dir, const char *from, int to_dir, const char *to, int flags);
    /* The boot id as 36 characters and a NUL; false if the system does not tell. */
    bool (*boot_id)(char out[37]);
    /* A number that differs between time namespaces; 0 if the system has none. */
    uint64_t (*time_namespace)(void);
    bool maps; /* slot files may be mapped: what happens in memory takes none of these calls */
};

extern const struct hf__file_sys hf__file_sys_real;

/* pwrite until all is written; false with errno. */
bool hf__write_all(const struct hf__file_sys *sys, int fd, const void *data, size_t len, off_t at);
/* Reads at most len bytes of a small file of that directory. Never blocks, should it be a FIFO, and
 * follows no link. Returns how many; -1 with errno. */
ssize_t hf__read_small(const struct hf__file_sys *sys, int dir, const char *name, void *out,
                       size_t len);

#endif /* HF_STORES_FILE_SYS_H */
