/* keep.h - how the parts of `holdfast keep` fit together.
 *
 *     front        what the script started: waits until the lock is taken, and ends
 *      `- keeper   has the store and the lease; prints what the script evaluates, and lives on
 *          `- watchdog   knows no store; signals the script when the keeper cannot
 *
 * Keeper and watchdog share a page with the lease's deadline, as the processes of `run` do (run.h),
 * and both watch the script. Whoever finds first that the lease is about to end, unrenewed, sends
 * the signal: neither needs the other for it. */
#ifndef HF_CLI_KEEP_H
#define HF_CLI_KEEP_H

#include "cli/run/run.h"

struct keep_page {
    struct run_page plan;
    _Atomic int done; /* the keeper ends, and nothing is wrong */
};

/* What is watched, by the keeper or by the watchdog. */
struct keep_watch {
    struct keep_page *page;
    const char *name;
    pid_t script;
    int script_fd; /* pidfd of it */
    int end_fd;    /* readable: the watch is over. The keeper's signals; for the watchdog, the
                    * socket to the keeper: its life */
    struct hf_lease *lease; /* NULL: the watchdog's */
};

enum keep_end {
    KEEP_SCRIPT_ENDED,
    KEEP_TOLD_TO_END, /* end_fd */
};

/* Watches until the script ends or end_fd is readable, and signals the script when it is due. */
enum keep_end keep_watch(struct keep_watch *watch);
/* Lets the watchdog stand for this client's life too, in stores with crash release: a keeper that
 * was killed must not free the lock while the script is still there. */
void keep_share_life(int link_fd, int life_fd);
/* What the watchdog does: until the script or the keeper has ended. */
_Noreturn void keep_watchdog(struct keep_watch *watch, pid_t keeper);
/* pidfd_open(2) for somebody whom we may signal; -1 with errno. */
int keep_open_script(pid_t pid);

#endif /* HF_CLI_KEEP_H */
