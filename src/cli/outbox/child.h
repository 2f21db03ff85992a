/* child.h - the process of a command that messages are delivered to: started with pipes, watched
 * and ended. It leads a group of its own. */
#ifndef HF_CLI_OUTBOX_CHILD_H
#define HF_CLI_OUTBOX_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct outbox_child {
    pid_t pid; /* 0: it does not run */
    int in;    /* what it reads; writing does not block */
    int out;   /* what it writes; reading does not block */
};

/* 0, or errno: it could not be executed, and does not run. */
int outbox_child_start(struct outbox_child *child, char **command, char **environment);
/* Waits for its end, until until_ns; true: it has ended, and is still to be reaped. */
bool outbox_child_ended(const struct outbox_child *child, int64_t until_ns);
/* Closes the pipes and waits for it; its status, as waitpid(2) has it. */
int outbox_child_reap(struct outbox_child *child);
/* Closes its input, gives it time, ends it and its group, and reaps it. */
void outbox_child_end(struct outbox_child *child);

#endif /* HF_CLI_OUTBOX_CHILD_H */
