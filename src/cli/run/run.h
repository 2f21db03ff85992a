/* run.h - how the parts of `holdfast run` fit together.
 *
 *     supervisor   the process the user started: has the store and the lease, forwards signals
 *      `- watchdog its child: starts CMD, ends the tree when nobody else would
 *          `- CMD  the tree: everything that descends from the watchdog
 *
 * The watchdog, not the supervisor, is the parent of CMD and a subreaper. So whatever CMD starts
 * stays below the watchdog, however often it forks or calls setsid, and when the supervisor is
 * killed or stopped the watchdog still has the whole tree in reach. The supervisor is a subreaper
 * too: if the watchdog is killed, what is left of the tree becomes the supervisor's.
 *
 * Where there is a cgroup, the supervisor starts a spare watchdog as well when CMD has run for a
 * while: it ends what is in the cgroup if the other two are killed or stopped together.
 *
 * They share one page of memory with the lease's deadline, and a socket for short words. Ending the
 * tree needs neither an answer from the store nor one from the other process. */
#ifndef HF_CLI_RUN_RUN_H
#define HF_CLI_RUN_RUN_H

#include "cli/audit/audit.h"
#include "cli/cli.h"
#include "cli/events/events.h"
#include "cli/say/stderr.h"
#include "cli/take/take.h"

#include <holdfast/store.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

/* In the order of the choices on the command line. */
enum run_on_loss { RUN_LOSS_TERM, RUN_LOSS_KILL, RUN_LOSS_WARN };
enum run_leftover { RUN_LEFTOVER_WAIT, RUN_LEFTOVER_TERM, RUN_LEFTOVER_RELEASE };

struct run_options {
    struct take_options take; /* ttl_ms, once the lock is taken: as it was granted */
    struct events_options events;
    struct take_names names;
    const char *name; /* the first of these; of what was taken, once it was */
    char **command;   /* CMD and its arguments, ends with NULL */
    int64_t grace_ms;
    int64_t max_runtime_ms; /* 0: none */
    int on_loss;
    int leftover;
    bool grace_given;
    bool max_runtime_given;
    bool skip_ok;
    bool no_reenter;
    struct audit_require require;
};

/* When to end the tree: end.c */

/* What run and keep have in their tables about it. */
extern const char *const run_on_loss_words[];
#define RUN_ENDING_OPTIONS(options)                                                                \
    {0,                                                                                            \
     "grace",                                                                                      \
     CLI_DURATION,                                                                                 \
     "DURATION",                                                                                   \
     "from TERM to KILL; default: 5s, at most a third of the ttl",                                 \
     NULL,                                                                                         \
     &(options)->grace_ms,                                                                         \
     &(options)->grace_given},                                                                     \
    {                                                                                              \
        0, "on-loss", CLI_CHOICE, "WHAT", "if the lock is lost: term (default), kill or warn",     \
            run_on_loss_words, &(options)->on_loss, NULL                                           \
    }

/* Why the tree is being ended. */
enum run_cause { RUN_NOT_ENDING, RUN_LOST, RUN_MAX_RUNTIME, RUN_LEFTOVERS, RUN_ORPHANED };

/* Whether CMD is executed. */
enum run_start { RUN_START_OPEN, RUN_STARTED, RUN_START_REFUSED };

/* What the supervisor and the watchdog share. All times are CLOCK_BOOTTIME in nanoseconds. */
struct run_page {
    /* Set before the watchdog starts, and constant from then on. */
    int64_t grace_ns;
    int64_t margin_ns;
    int64_t stop_at_ns; /* --max-runtime; HF_NEVER: none */
    enum run_on_loss on_loss;

    _Atomic int64_t deadline_ns; /* of the lease; HF_NEVER: there is none to keep */
    _Atomic int64_t order_ns;    /* the tree is to be ended from this time on; HF_NEVER */
    _Atomic int order_cause;     /* set before order_ns */
    _Atomic int64_t began_ns;    /* the ending began; 0: not yet. Whoever sets it sends TERM */
    _Atomic int cause;           /* set right after began_ns */
    _Atomic int command_pid;     /* 0: not started yet */
    _Atomic int command_status;  /* as from waitpid(2), once the watchdog said it exited */
    _Atomic int start_errno;     /* the watchdog could not fork CMD: why */
    _Atomic int exec_errno;      /* CMD could not be executed: why */
    _Atomic int stopped_by;      /* the signal of the terminal that stopped CMD last */
    _Atomic int refused_pid;     /* of the tree, and we have no right to signal it; 0 */
    _Atomic int in_cgroup;       /* CMD was started in its cgroup */
    _Atomic int misplaced;       /* CMD is not in the cgroup that was meant */
    _Atomic int start;           /* enum run_start: whoever decides first */
};

struct run_plan {
    int64_t term_ns;
    int64_t kill_ns;
    enum run_cause cause;
};

/* The margin before the deadline at which KILL begins, for a ttl. */
int64_t run_margin_ns(int64_t ttl_ms);
/* Fills a page with the rules of the options; the clock of --max-runtime starts now. */
void run_page_init(struct run_page *page, const struct run_options *options);
/* What the page asks for at this moment. No side effects, no clock. */
struct run_plan run_plan_of(const struct run_page *page);
/* Asks for the end of the tree at once. The first to ask wins. */
void run_page_order(struct run_page *page, enum run_cause cause);
/* Starts the ending, if it is due and nobody else did. True: the caller sends TERM. */
bool run_page_begin(struct run_page *page, const struct run_plan *plan, int64_t now_ns);
/* Decides whether CMD is executed, if nobody did: not if the lease has ended, or if its end is so
 * near that TERM is due. Otherwise yes if the caller is about to, else it stays open. */
enum run_start run_page_decide(struct run_page *page, int64_t now_ns, bool about_to);
/* Publishes the deadline of leases, of several the earliest, and never a later one than the true
 * one; if one has ended, the present, unless an earlier one is known. */
void run_page_publish(struct run_page *page, struct hf_lease *const *leases, size_t count);

/* Whether there is time for that: timing.c */

enum { RUN_WHY_SIZE = 320 }; /* bytes of a sentence about the ttl */

/* How long after a renewal the next one is due. */
int64_t run_renew_ns(int64_t ttl_ms);
/* The default for the ttl, unless a grace was given. */
void run_choose_grace(struct run_options *options);
/* False if the ttl is too short for a renewal and the grace; *why says so in a sentence. */
bool run_timing_fits(const struct run_options *options, char *why, size_t size);

/* The tree of processes: tree.c. None of this allocates memory. */

enum {
    RUN_TREE_MAX = 4096,  /* processes looked at in one round; more are met in the next */
    RUN_FOREIGN_MAX = 128 /* children we had before we started the watchdog */
};

struct run_process {
    pid_t pid;
    pid_t parent; /* when it was found */
};

struct run_tree {
    pid_t root; /* whose descendants they are; not in the list itself */
    size_t count;
    struct run_process list[RUN_TREE_MAX];
};

/* What a walk leaves alone. */
struct run_foreign {
    pid_t watchdog; /* not in the list, but its descendants are; 0: none */
    size_t count;
    pid_t list[RUN_FOREIGN_MAX]; /* not in the list, nor are their descendants */
};

/* Finds all living descendants of root. foreign may be NULL. False if /proc did not tell of all, or
 * is none of ours: there may be others than those in the list, an empty list does not mean that
 * they are gone. */
bool run_tree_find(struct run_tree *tree, pid_t root, const struct run_foreign *foreign);
/* The same from the parents in /proc/PID/stat, for kernels without the `children` files. */
bool run_tree_find_by_stat(struct run_tree *tree, pid_t root, const struct run_foreign *foreign);
/* Sends a signal to each. A process that is no longer where it was found is left out. Returns one
 * to whom we have no right to send it (EPERM); 0: there is none. */
pid_t run_tree_signal(const struct run_tree *tree, int number);
/* Adds one to the list, unless it is foreign. */
void run_tree_add(struct run_tree *tree, const struct run_foreign *foreign, pid_t pid,
                  pid_t parent);
/* "pid 123 (make)". */
void run_tree_describe(char *out, size_t size, pid_t pid);

/* Without /proc: children.c */

/* Finds our own children, the dead ones too. first: the first process of the tree, so that only
 * numbers from there on are asked for; 0: all numbers, which takes a second. */
void run_children_find(struct run_tree *tree, const struct run_foreign *foreign, pid_t first);

/* A cgroup of CMD's own: cgroup.c. With fd -1 there is none, and nothing happens. */

enum { RUN_CGROUP_PATH_MAX = 1024 };

struct run_cgroup {
    int fd;                           /* its directory */
    bool sure;                        /* run_cgroup_is_below need not look */
    char path[RUN_CGROUP_PATH_MAX];   /* of that */
    char inside[RUN_CGROUP_PATH_MAX]; /* the cgroup that we are in ourselves */
};

/* Makes one below our own cgroup, if we may. */
void run_cgroup_make(struct run_cgroup *cgroup);
/* For a child that was started in it: is the cgroup really below the one that its parent is in? */
bool run_cgroup_is_below(const struct run_cgroup *cgroup);
/* Ends all who are in it. False if it cannot. */
bool run_cgroup_kill(const struct run_cgroup *cgroup);
void run_cgroup_signal(const struct run_cgroup *cgroup, int number);
/* Removes it. False if somebody is still in it. */
bool run_cgroup_remove(struct run_cgroup *cgroup);
/* Removes it, and puts whoever is in it where we are. */
void run_cgroup_dissolve(struct run_cgroup *cgroup);

/* Signals: signals.c */

enum { RUN_TOUCHED = 3 };

struct run_signals {
    int fd;             /* signalfd(2) of the signals that are forwarded */
    sigset_t inherited; /* the mask we were started with */
    sigset_t watched;   /* what fd reports */
    struct sigaction before[RUN_TOUCHED];
};

/* Blocks the forwarded signals and turns them into a descriptor; those ignored by whoever started
 * us stay ignored. False after a message. */
bool run_signals_begin(struct run_signals *signals);
/* The next pending signal, false if there is none. *from_kernel: the terminal sent it. */
bool run_signals_take(struct run_signals *signals, int *number, bool *from_kernel);
/* Adds SIGCHLD to what fd reports, and takes it away again. */
void run_signals_watch_children(struct run_signals *signals);
void run_signals_leave_children(struct run_signals *signals);
/* Puts everything back to what we inherited, for CMD. Async-signal-safe. */
void run_signals_restore(const struct run_signals *signals);

/* The watchdog: watchdog.c */

/* One byte each on the socket. To the watchdog: these, or a signal's number to forward. */
enum { RUN_WORD_ORDER = 100, RUN_WORD_LOST, RUN_WORD_HANGUP };
/* And from it. */
enum { RUN_WORD_BEGAN = 1, RUN_WORD_EXITED, RUN_WORD_STOPPED, RUN_WORD_REFUSED, RUN_WORD_GONE };

struct run_watchdog {
    struct run_page *page;
    const struct run_signals *signals;
    struct run_cgroup *cgroup;
    char **command;
    char **environment;
    pid_t group;    /* CMD joins this process group; 0: one of its own */
    int link;       /* the watchdog's end of the socket */
    int above;      /* reads end-of-file when the hold above us ends; -1: no such pipe */
    int lost_write; /* closed when the lease is lost */
    int lost_read;  /* CMD inherits it; -1: none */
    int life_fd;    /* CMD inherits it; -1: none */
    int output[2];  /* CMD's stdout and stderr; -1: ours */
};

/* Closes all descriptors but these; -1 is none: close.c. */
void run_close_others(const int *keep, size_t count);
/* What the child of the supervisor does until the tree is gone. */
_Noreturn void run_watchdog_main(struct run_watchdog *watchdog);

/* The supervisor: supervise.c */

/* A lock that a process above us holds. */
struct run_held {
    const char *name;
    uint64_t token;
    int lost_fd; /* its HOLDFAST_LOST_FD; -1: we did not inherit it */
};

enum { RUN_EXIT_AS_COMMAND = -1 };

struct run_job;
struct run_outcome;

/* What a command adds to a turn of the job. Called in the main thread; each may be NULL. */
struct run_hooks {
    /* The lease is held, and nobody renews it yet; CMD is not started. False: it is not to be,
     * *exit_code is the turn's. May set the job's variables and output. */
    bool (*before)(struct run_job *job, int *exit_code);
    /* CMD's whole tree is gone (or left alone, as --leftover says); the lease is not released yet,
     * and renewed meanwhile if CMD ran long enough. outcome is NULL if nothing could be started. */
    void (*after)(struct run_job *job, const struct run_outcome *outcome);
    bool keeps; /* after takes its time: the lease is renewed from the start of CMD on */
    void *data; /* the command's */
};

/* Of one turn, for those who are told; CLOCK_BOOTTIME, 0: it did not come to that. */
struct run_times {
    int64_t wanted_ns;
    int64_t held_ns;
    int64_t started_ns;
    int64_t renewed_ns; /* the keeper's, once it keeps the lease */
    int64_t ran_ms;
    bool told_lost;
    bool ended; /* the next turn begins anew */
};

struct run_job {
    struct run_options *options;
    struct events *events; /* NULL: nobody wants to know */
    bool again;            /* set by a hook: the same turn, as others see it, goes on */
    struct run_times times;
    struct run_hooks hooks;
    struct cli_stderr *writer;
    struct run_signals signals;
    struct run_page *page;
    struct hf_store *store;
    const char *url;             /* by which it was opened */
    bool unchecked;              /* whether it is fit for what is required could not be seen */
    struct take take;            /* has the other leases, if there are several */
    struct hf_lease *lease;      /* NULL: the lock is already held above us */
    const struct run_held *held; /* that hold; NULL: there is something left to take */
    struct run_held holds[HF_SEVERAL_MAX]; /* what of our locks is held above us */
    size_t hold_count;
    const char *wanted[HF_SEVERAL_MAX]; /* what is not */
    char above[HF_NAME_MAX + 1];        /* the last by name of all that is held above us, or "" */
    char name[HF_NAME_MAX + 1];         /* of the first lease, or the first hold: options->name */
    char **environment;
    int lost_pipe[2]; /* -1: none, the hold above us has its own */
    int life_fd;      /* -1: the store has no crash release */
    int store_fd;     /* the URL for a holdfast below; -1: HOLDFAST_STORE says it all */
    /* "NAME=value" for CMD, in place of what we inherited under that name; ends with NULL. NULL:
     * none. The caller's, until the turn is over. */
    const char *const *variables;
    int output[2];  /* CMD's stdout and stderr, closed by run_supervise; -1: ours */
    pid_t watchdog; /* set by run_supervise; <= 0: gone */
    int die_of;     /* the signal that is to end us; 0: none */
    int exit_code;  /* of the turn, if the hook `after` knows better; RUN_EXIT_AS_COMMAND */
};

/* How it went. */
struct run_outcome {
    int status; /* of CMD, as from waitpid(2) */
    int start_errno;
    int exec_errno;
    enum run_cause cause;
    bool lost;          /* the lease was, or could not be kept */
    bool watchdog_died; /* the tree was ended because of that */
    bool terminal;      /* CMD shared our process group */
    /* The first of TERM, INT, QUIT that came for us while CMD ran, else HUP if it came; 0: none. */
    int told_to_end;
};

/* Runs CMD, and returns when the whole tree is gone (or left alone, as --leftover says). False
 * after a message if it could not be started. */
bool run_supervise(struct run_job *job, struct run_outcome *outcome);
/* Reaps the watchdog. Separate, so that it can end while the lock is being released. */
void run_supervise_end(const struct run_job *job);

/* What a job tells --events and --metrics on its way: job_events.c */

/* A turn begins. */
void run_events_begin(struct run_job *job);
/* For struct take, whose data is the job. */
void run_events_waiting(struct take *take, const struct hf_error *why);
void run_events_acquired(struct run_job *job);
void run_events_started(struct run_job *job);
/* In the keeper's thread. */
void run_events_renewed(struct run_job *job, const struct hf_lease *lease);
/* The first reason counts. */
void run_events_lost(struct run_job *job, const char *reason);
void run_events_exited(struct run_job *job, const struct run_outcome *outcome);
void run_events_released(struct run_job *job);
/* CMD is not run, because it is somebody else's turn. */
void run_events_skipped(struct run_job *job, const char *reason);
/* CMD is not run, because something is wrong. */
void run_events_failed(struct run_job *job, const char *reason);
/* The turn is over. */
void run_events_ended(struct run_job *job, int exit_code);

/* The environment of CMD: env.c */

/* Looks in HOLDFAST_HELD for a lock, and asks the store whether it is true: a daemon may carry the
 * environment of a hold that is long over. */
bool run_held_find(struct hf_store *store, const char *name, struct run_held *held);
/* The last by name of all locks that are held above us in that store, by the same question; ""
 * if none is. */
void run_held_last(struct hf_store *store, char out[HF_NAME_MAX + 1]);
/* The environment for CMD, as it shall look under the job's lease, or under the hold above us if
 * the job has none. NULL if memory is short. End with run_environment_clear. */
char **run_environment(const struct run_job *job);
void run_environment_clear(char **environment);

/* The end of the hold above us, if we have no pipe that tells: above.c */

struct run_above;

/* Watches a hold by its token. *fd reads end-of-file once it has ended; the caller closes it. NULL
 * if memory or threads are short. */
struct run_above *run_above_begin(struct hf_store *store, const char *name, uint64_t token,
                                  int *fd);
/* Takes NULL. */
void run_above_end(struct run_above *above);

#endif /* HF_CLI_RUN_RUN_H */
