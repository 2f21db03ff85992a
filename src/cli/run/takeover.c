/* takeover.c - what the supervisor does itself: the work of a watchdog that is late or dead, and
 * naming what CMD left behind. */
#include "cli/run/supervise.h"

#include "base/base.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LAG_PART = 4, /* of the margin: how long the watchdog may be late before we step in */
    LEFTOVER_NAMED_MAX = 10, /* processes named on stderr */
    ROUND_MS = 5             /* between two rounds of KILL */
};

static bool reap_orphans(struct run_supervisor *s, const struct run_tree *tree);
static bool reap_one(struct run_supervisor *s, pid_t wanted);

int64_t run_lag_ns(const struct run_supervisor *s)
{
    return s->page->margin_ns / LAG_PART;
}

/* Does the watchdog's work if the watchdog is late. If nothing helps by the deadline, the
 * watchdog goes too: its tree becomes ours, and we can reap it. */
void run_take_over(struct run_supervisor *s, const struct run_plan *plan, int64_t now_ns)
{
    struct run_tree tree;
    int64_t late_ns = now_ns - run_lag_ns(s);
    bool began = atomic_load(&s->page->began_ns) != 0;
    bool begin = !began && late_ns >= plan->term_ns && run_page_begin(s->page, plan, now_ns);
    struct run_plan next;
    bool hopeless;
    bool enough;
    bool all;

    if (!begin && (!began || late_ns < plan->kill_ns))
        return;
    if (begin)
        run_say_why(s);
    next = run_plan_of(s->page);
    enough = now_ns >= next.kill_ns;
    all = run_tree_find(&tree, getpid(), &s->foreign);
    (void)run_tree_signal(&tree, enough ? SIGKILL : SIGTERM);
    if (!enough)
        (void)run_tree_signal(&tree, SIGCONT);
    if (enough)
        (void)run_cgroup_kill(&s->cgroup);
    else if (!all)
        run_cgroup_signal(&s->cgroup, SIGTERM);
    hopeless = now_ns >= next.kill_ns + s->page->margin_ns;
    if (enough && (hopeless || !all) && atomic_load(&s->page->refused_pid) == 0 && s->watchdog > 0)
        (void)cli_kill(s->watchdog, SIGKILL);
}

/* The socket closes a moment before the watchdog's children become ours, so wait for its end first.
 * CMD had SIGKILL from the kernel when its parent died; the rest gets it from us. */
void run_watchdog_died(struct run_supervisor *s)
{
    struct run_tree tree;

    (void)close(s->link);
    s->link = -1;
    s->outcome->watchdog_died = true;
    if (atomic_load(&s->page->start) != RUN_START_REFUSED)
        cli_stderr_say(s->job->writer, "the watchdog died; ending %s", s->job->options->command[0]);
    if (s->watchdog > 0)
        (void)waitpid(s->watchdog, NULL, 0);
    s->watchdog = -1;
    s->foreign.watchdog = 0;
    for (;;) {
        pid_t refused;

        (void)run_cgroup_kill(&s->cgroup);
        if (!run_tree_find(&tree, getpid(), &s->foreign))
            run_children_find(&tree, &s->foreign, 0);
        refused = run_tree_signal(&tree, SIGKILL);
        if (refused > 0) {
            atomic_store(&s->page->refused_pid, refused);
            run_say_refused(s);
        }
        if (reap_orphans(s, &tree) && run_cgroup_remove(&s->cgroup))
            break;
        hf__sleep_ns(ROUND_MS * HF__NS_PER_MS);
    }
    s->gone = true;
}

/* True when none is left. Children that we had before are not ours to wait for. */
static bool reap_orphans(struct run_supervisor *s, const struct run_tree *tree)
{
    if (s->foreign.count == 0) {
        while (reap_one(s, -1))
            continue;
        return errno == ECHILD;
    }
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->list[i].parent == tree->root)
            (void)reap_one(s, tree->list[i].pid);
    }
    return tree->count == 0;
}

static bool reap_one(struct run_supervisor *s, pid_t wanted)
{
    int status;
    pid_t pid;

    errno = 0;
    pid = waitpid(wanted, &status, WNOHANG);
    if (pid > 0 && pid == atomic_load(&s->page->command_pid))
        atomic_store(&s->page->command_status, status);
    return pid > 0;
}

void run_say_refused(struct run_supervisor *s)
{
    char one[64];
    pid_t pid = atomic_load(&s->page->refused_pid);

    if (s->said_refused)
        return;
    s->said_refused = true;
    run_tree_describe(one, sizeof one, pid);
    cli_stderr_say(s->job->writer,
                   "%s cannot be ended: it runs as another user, and may not be signalled (EPERM)",
                   one);
}

void run_name_leftovers(struct run_supervisor *s)
{
    struct run_tree tree;
    char names[512] = "";
    size_t used = 0;
    size_t shown;

    s->name_at_ns = HF_NEVER;
    if (!run_tree_find(&tree, s->watchdog, NULL) || tree.count == 0)
        return;
    shown = tree.count < LEFTOVER_NAMED_MAX ? tree.count : LEFTOVER_NAMED_MAX;
    for (size_t i = 0; i < shown; i++) {
        char one[64];
        int len;

        run_tree_describe(one, sizeof one, tree.list[i].pid);
        len = snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", one);
        if (len < 0 || (size_t)len >= sizeof names - used)
            break;
        used += (size_t)len;
    }
    cli_stderr_say(
        s->job->writer,
        "%s ended but left %s%s running; lock \"%s\" stays held until %s gone (see --leftover)",
        s->job->options->command[0], names, shown < tree.count ? " and more" : "",
        s->job->options->name, tree.count == 1 ? "it is" : "they are");
}
