/* trap.h - what happened in one springing of the trap: told in the terminal, drawn as a picture. */
#ifndef HF_CLI_TRAP_H
#define HF_CLI_TRAP_H

#include <holdfast.h>
#include <stdio.h>

enum { TRAP_START = 100, TRAP_DEPOSIT_1 = 10, TRAP_DEPOSIT_2 = 20 }; /* the account's story */

/* In the order they happen. */
enum trap_step {
    TRAP_TAKES_1,  /* worker 1 takes the lock                     */
    TRAP_READS_1,  /* reads the balance, looks at its lease       */
    TRAP_FREEZES,  /* is stopped                                  */
    TRAP_EXPIRES,  /* its lease ends: the deadline it was given   */
    TRAP_TAKES_2,  /* worker 2 takes the lock                     */
    TRAP_READS_2,  /* reads the balance                           */
    TRAP_WRITES_2, /* writes it                                   */
    TRAP_THAWS,    /* worker 1 goes on as if nothing had happened */
    TRAP_WRITES_1, /* and writes                                  */
    TRAP_STEPS
};

struct trap_run {
    bool fenced;
    int64_t at_ms[TRAP_STEPS]; /* since the start */
    uint64_t token_1, token_2;
    int64_t left_ms; /* of worker 1's lease when it looked, before it froze */
    long read_1;     /* what the workers saw in the account                 */
    long read_2;
    long final_balance; /* what is in it at the end                            */
    bool refused;       /* worker 1's write was refused as stale               */
    char refusal[HF_ERROR_TEXT_SIZE];
};

/* Did the unfenced account lose a deposit? Did the fence refuse and keep it? */
bool trap_sprung(const struct trap_run *run);

/* trap_timeline.c: colour as escape sequences. */
void trap_print(FILE *out, const struct trap_run *run, bool colour);

/* trap_svg.c: both runs, the unfenced first. False if the file cannot be written. */
bool trap_draw(const char *path, const struct trap_run runs[2], const char *store, int64_t ttl_ms);

/* "...170033": the end of a token, long enough to show that it is above (or below) the other. */
const char *trap_short_token(char out[32], uint64_t token, uint64_t other);

#endif /* HF_CLI_TRAP_H */
