/* supervise.h - what the two halves of the supervisor share. */
#ifndef HF_CLI_RUN_SUPERVISE_H
#define HF_CLI_RUN_SUPERVISE_H

#include "cli/run/run.h"

struct run_supervisor {
    struct run_job *job;
    struct run_page *page;
    struct run_outcome *outcome;
    struct run_foreign foreign;
    struct run_cgroup cgroup;
    pid_t watchdog;
    pid_t spare; /* 0: none */
    int link;
    int timer;
    int lost_fd; /* epoll: a lease is lost, or a hold above us has ended; -1: none */
    struct run_above *above[HF_SEVERAL_MAX]; /* who watch holds that have no pipe for us */
    int above_fds[HF_SEVERAL_MAX];           /* and what they tell it by */
    size_t above_count;
    size_t kept;         /* how many of the leases the keeper has */
    int64_t keep_at_ns;  /* HF_NEVER: kept, or nothing to keep */
    int64_t spare_at_ns; /* when to start the spare watchdog; HF_NEVER */
    int64_t name_at_ns;  /* when to name what CMD left behind; HF_NEVER */
    bool exited;         /* CMD did, but something it started is still there */
    bool said_why;
    bool said_not_kept;
    bool said_refused;
    bool gone; /* the whole tree, or it is left alone */
};

/* supervise.c */

/* Tells the person why the tree is being ended, once. */
void run_say_why(struct run_supervisor *s);
/* A word for the watchdog. */
void run_tell(struct run_supervisor *s, int word);

/* keep.c */

/* When the keeper is to start, by the lease's time. */
int64_t run_keep_at_ns(const struct run_page *page, int64_t ttl_ms);
/* Starts it. */
void run_keep(struct run_supervisor *s, int64_t now_ns);
/* From here on the end of a hold above us is a loss. */
void run_watch_above(struct run_supervisor *s);
/* What was held no longer is: says so, and has the tree ended. */
void run_lease_lost(struct run_supervisor *s);
/* Nothing is watched any more. */
void run_keep_end(struct run_supervisor *s);

/* spare.c */

/* When a spare watchdog is to be started, from now. */
int64_t run_spare_at(const struct run_supervisor *s);
void run_spare_start(struct run_supervisor *s);
void run_spare_end(struct run_supervisor *s);

/* terminal.c */

/* Is there a terminal that controls us? */
bool run_has_terminal(void);
/* CMD was stopped by this signal, because it is in the background: stops us as well, so that the
 * shell knows. Returns when we are woken, or if we are in the foreground by then. */
void run_stop_with_command(int number);

/* takeover.c */

/* How long the watchdog may be late before the supervisor does its work. */
int64_t run_lag_ns(const struct run_supervisor *s);
/* Does what the plan asks for, if the watchdog is late. */
void run_take_over(struct run_supervisor *s, const struct run_plan *plan, int64_t now_ns);
/* The watchdog is dead: ends the tree, which is ours now. */
void run_watchdog_died(struct run_supervisor *s);
/* Says that a process of the tree cannot be ended, once. */
void run_say_refused(struct run_supervisor *s);
/* Says which processes CMD left behind. */
void run_name_leftovers(struct run_supervisor *s);

#endif /* HF_CLI_RUN_SUPERVISE_H */
