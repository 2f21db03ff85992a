/* take.h - taking a lock for a command: wait for the store, then for the lock, within one limit,
 * and say meanwhile for whom, or for what. */
#ifndef HF_CLI_TAKE_TAKE_H
#define HF_CLI_TAKE_TAKE_H

#include "cli/cli.h"
#include "cli/say/thread.h"
#include "cli/say/stderr.h"

#include <holdfast/store.h>
#include <signal.h>
#include <time.h>

/* How long we wait for the store and the lock, together. */
struct run_patience {
    int64_t wait_ms;  /* as it was given; < 0: without limit    */
    int64_t until_ns; /* 0: no wait at all; HF_NEVER: without limit */
};

/* While the store is being opened: startup_signals.c */

struct cli_startup {
    timer_t timer;
    struct sigaction before; /* of the timer's signal */
    int signal_fd;
    void (*last_words)(int number);
    bool watched;
};

/* From here on we die of a signal at once, however long the main thread is held up. last_words (may
 * be NULL) is called before, and has to be async-signal-safe. The struct must not be moved. */
void cli_startup_begin(struct cli_startup *startup, int signal_fd, void (*last_words)(int number));
/* From here on signals wait to be taken. Call it before there is anything to give back. */
void cli_startup_end(struct cli_startup *startup);

/* What is said while waiting: wait.c */

struct run_wait {
    struct cli_stderr *writer; /* set before run_wait_begin, as are */
    struct hf_store *store;
    const char *name;
    bool quiet; /* off a terminal only trouble is said */
    struct run_patience patience;
    int64_t since_ns;
    bool live; /* stderr is a terminal */
    bool painted;
    bool running;
    bool stop;
    enum hf_status trouble; /* HF_OK: none */
    int64_t trouble_until_ns;
    pthread_t thread;
    struct cli_condition condition;
};

/* Starts to say for whom we wait, with the stderr writer that *wait has; NULL: nothing is said. */
void run_wait_begin(struct run_wait *wait, const struct run_patience *patience);
/* Says why the store does not serve us, unless that is known already. */
void run_wait_trouble(struct run_wait *wait, const struct hf_error *why);
/* Nothing more is said from here on, and the live line is gone. Does not wait for the store. */
void run_wait_hush(struct run_wait *wait);
/* Joins the thread; before the store is closed. */
void run_wait_end(struct run_wait *wait);

/* Waiting for the store, and for the lock: take.c */

/* From now on; wait_ms as in hf_acquire_options. */
struct run_patience run_patience_of(int64_t wait_ms);
/* As hf_open, but a store that is down, or in quarantine, is asked again until the limit. */
enum hf_status run_open_store(const char *url, const struct run_patience *patience,
                              struct cli_stderr *writer, struct hf_store **out,
                              struct hf_error *err);
/* Takes the lock of wait, and says for whom we wait meanwhile. Sets wait_ms of the options;
 * on_trouble and cancel_fd are the caller's. run_wait_end has to follow. */
enum hf_status run_take(struct run_wait *wait, const struct run_patience *patience,
                        struct hf_acquire_options *options, struct hf_lease **out,
                        struct hf_error *err);
/* "WHY; waiting for at most 10s". */
void run_say_trouble(struct cli_stderr *writer, const struct run_patience *patience,
                     const struct hf_error *err);

#endif /* HF_CLI_TAKE_TAKE_H */
