/* trap.h - the trap: its stage and its workers; what happened, told in the terminal and drawn. */
#ifndef HF_CLI_TRAP_H
#define HF_CLI_TRAP_H

#include <holdfast.h>
#include <stdio.h>
#include <sys/types.h>

enum { TRAP_START = 100, TRAP_DEPOSIT_1 = 10, TRAP_DEPOSIT_2 = 20 }; /* the account's story */

enum {
    TRAP_PATH_SIZE = 4096,
    TRAP_EXTRA_WAIT_MS =
        20000 /* how much longer than the ttl worker 2 waits, and we for a worker */
};

struct trap_stage {
    const char *url;
    int64_t ttl_ms;
    int stop_fd; /* readable: we were told to stop */
    bool fenced;
    char lock[64];
    char dir[TRAP_PATH_SIZE - 64];
    char account[TRAP_PATH_SIZE];
};

/* worker.c: what the director tells a worker to do, and what the worker answers. */
enum trap_order {
    TRAP_ORDER_TAKE = 't',
    TRAP_ORDER_READ = 'r',
    TRAP_ORDER_WRITE = 'w',
    TRAP_ORDER_QUIT = 'q'
};
struct trap_answer {
    enum hf_status status;
    uint64_t token;
    int64_t left_ms;
    long balance;
    char text[HF_ERROR_TEXT_SIZE];
};

struct trap_worker {
    pid_t pid;
    int orders;  /* we write here */
    int answers; /* and read here */
};

bool trap_start_worker(struct trap_worker *worker, const struct trap_stage *stage, long deposit);
/* at_once: whatever it is doing. */
void trap_end_worker(struct trap_worker *worker, bool at_once);
/* Waits for the answer; HF_CANCELLED if we are told to stop meanwhile. */
enum hf_status trap_tell(const struct trap_stage *stage, struct trap_worker *worker,
                         enum trap_order order, struct trap_answer *answer, struct hf_error *err);
enum hf_status trap_freeze(struct trap_worker *worker, struct hf_error *err);

enum hf_status trap_read_account(const char *path, long *out, struct hf_error *err);
/* What everybody does without a fence: a new file, moved into place. */
enum hf_status trap_write_plainly(const char *path, const char *text, struct hf_error *err);

/* In the order they happen. */
enum trap_step {
    TRAP_TAKES_1,  /* worker 1 takes the lock */
    TRAP_READS_1,  /* reads the balance, looks at its lease */
    TRAP_FREEZES,  /* is stopped */
    TRAP_EXPIRES,  /* its lease ends: the deadline it was given */
    TRAP_TAKES_2,  /* worker 2 takes the lock */
    TRAP_READS_2,  /* reads the balance */
    TRAP_WRITES_2, /* writes it */
    TRAP_THAWS,    /* worker 1 goes on as if nothing had happened */
    TRAP_WRITES_1, /* and writes */
    TRAP_STEPS
};

struct trap_run {
    bool fenced;
    int64_t at_ms[TRAP_STEPS]; /* since the start */
    uint64_t token_1, token_2;
    int64_t left_ms; /* of worker 1's lease when it looked, before it froze */
    long read_1;     /* what the workers saw in the account */
    long read_2;
    long final_balance; /* what is in it at the end */
    bool refused;       /* worker 1's write was refused as stale */
    char refusal[HF_ERROR_TEXT_SIZE];
};

/* Did the unfenced account lose a deposit? Did the fence refuse and keep it? */
bool trap_sprung(const struct trap_run *run);

/* timeline.c: colour as escape sequences. */
void trap_print(FILE *out, const struct trap_run *run, bool colour);

/* svg.c: both runs, the unfenced first, in place of what is in the file. False, with errno, if
 * it cannot be written. */
bool trap_draw(FILE *out, const struct trap_run runs[2], const char *store, int64_t ttl_ms);

/* "...170033": the end of a token, long enough to show that it is above (or below) the other. */
const char *trap_short_token(char out[32], uint64_t token, uint64_t other);

#endif /* HF_CLI_TRAP_H */
