/* fence_disk.h - a disk that loses power, for the file fence.
 *
 * What was written but not synced may be lost, kept, or kept in part: each 512-byte sector for
 * itself, and of the changes to the directory some first part. Only sync makes anything certain. */
#ifndef HF_TESTS_FENCE_DISK_H
#define HF_TESTS_FENCE_DISK_H

#include "fence/fence.h"

enum {
    DISK_INODES = 64,
    DISK_NAMES = 16,
    DISK_FDS = 64,
    DISK_FILE_MAX = 16 * 1024,
    DISK_CHANGES = 64,
    DISK_SECTOR = 512
};

struct disk_file {
    bool used;
    size_t size, durable_size;
    unsigned char data[DISK_FILE_MAX], durable[DISK_FILE_MAX];
};

struct disk_name {
    char name[HF__FENCE_NAME_SIZE];
    int inode; /* 0: free */
};

struct disk {
    struct hf__fence_io io;              /* first: the table leads back to the disk */
    struct disk_file files[DISK_INODES]; /* 0 is the directory */
    struct disk_name names[DISK_NAMES];
    struct disk_name durable_names[DISK_CHANGES + 1]
                                  [DISK_NAMES]; /* [0]: synced; then each change */
    int changes;
    int fds[DISK_FDS]; /* inode + 1; 0: closed */
    bool no_tmpfile;   /* a file system that cannot make files without a name */
    uint64_t random;
    int calls;  /* changing or syncing calls so far */
    int cut_at; /* the power fails before this call; 0: it does not */
    bool powered;
};

void disk_init(struct disk *disk, uint64_t seed);
/* The power comes back: decides what survived. */
void disk_reboot(struct disk *disk);
/* The content of a name, NULL if there is none. */
const unsigned char *disk_read(struct disk *disk, const char *name, size_t *size);
uint64_t disk_random(struct disk *disk);

#endif /* HF_TESTS_FENCE_DISK_H */
