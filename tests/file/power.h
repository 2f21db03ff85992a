/* power.h - a disk that notes every change of `floor` and `floor.new`, to lose power after each.
 *
 * Changes of the folder since its last fsync have reached the disk or not, in their order; what was
 * written to a file since its last fsync is there, lost, cut or garbage. */
#ifndef HF_TESTS_POWER_H
#define HF_TESTS_POWER_H

#include "../support/faultkit.h"

#define INODES_MAX  64
#define PENDING_MAX 64
#define STEPS_MAX   512
#define TEXT_MAX    96

struct content {
    char text[TEXT_MAX];
    size_t len;
};

struct inode {
    ino_t number;
    struct content now;
    struct content synced;
    bool ever_synced;
    bool dirty;
};

/* Which inode is behind each name: -1 for none. */
struct folder {
    int floor;
    int fresh; /* floor.new */
};

struct disk {
    struct inode inodes[INODES_MAX];
    int count;
    struct folder durable;
    struct folder pending[PENDING_MAX]; /* after each change since the last fsync of the folder */
    int pending_count;
};

struct step {
    struct disk disk;
    uint64_t given; /* the highest token given before */
};

/* What happened, and what shall go wrong. */
struct power {
    struct step steps[STEPS_MAX];
    int step_count;
    uint64_t given;
    bool drop_file_fsync;
    bool drop_dir_fsync;
    int fail_dir_fsync; /* the n-th from now fails */
};
extern struct power power;

/* An empty disk, nothing noted, all well. The wall clock is at 1. */
void begin(void);
/* Keeps the disk as it is now among the steps. */
void note_step(void);
/* The system that notes; and a store that is opened on a system. */
struct hf__file_sys noting_sys(void);
struct hf_store_base *open_simulated(const struct hf__file_sys *sys, const char *dir);

#endif /* HF_TESTS_POWER_H */
