/* watch.c - the script is watched, and told when its lock is about to be lost.
 *
 * The page says when TERM and KILL are due (end.c). A signal goes to the script before
 * anything is said: stderr may block. */
#include "cli/keep/keep.h"

#include "base/base.h"
#include "cli/say/loss.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOT_YET_MS = 1000 }; /* between looks: no deadline yet, or a killed script not gone yet */

static int send_signal(const struct keep_watch *watch, int number)
{
    return (int)syscall(SYS_pidfd_send_signal, watch->script_fd, number, NULL, 0);
}

int keep_open_script(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    int error;

    if (fd < 0)
        return -1;
    if (syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0)
        return fd;
    error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

static bool is_ready(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return fd >= 0 && poll(&poll_fd, 1, 0) > 0;
}

static void say(const struct keep_watch *watch, enum run_cause cause, const char *consequence)
{
    bool known = watch->lease != NULL && hf_lease_loss(watch->lease) != HF_LOSS_NONE;
    char what[CLI_LOSS_SIZE];
    char script[64];

    run_tree_describe(script, sizeof script, watch->script);
    if (cause == RUN_ORPHANED)
        cli_error("the keeper of lock \"%s\" is gone%s%s", watch->name, consequence,
                  consequence[0] != '\0' ? script : "");
    else
        cli_error("lock \"%s\" %s%s%s", watch->name,
                  known ? cli_loss_text(what, watch->lease) : "could not be renewed in time",
                  consequence, consequence[0] != '\0' ? script : "");
}

/* The ending begins. A stopped script hears TERM only when it goes on. */
static void begin(const struct keep_watch *watch, enum run_cause cause)
{
    static const char *const consequences[] = {[RUN_LOSS_TERM] = "; sending TERM to ",
                                               [RUN_LOSS_KILL] = "; sending KILL to ",
                                               [RUN_LOSS_WARN] = ""};
    enum run_on_loss on_loss = watch->page->plan.on_loss;

    if (on_loss == RUN_LOSS_TERM) {
        (void)send_signal(watch, SIGTERM);
        (void)send_signal(watch, SIGCONT);
    } else if (on_loss == RUN_LOSS_KILL) {
        (void)send_signal(watch, SIGKILL);
    }
    say(watch, cause, consequences[on_loss]);
}

/* Does what is due, and tells when to look again. */
static int64_t act(const struct keep_watch *watch)
{
    struct run_page *page = &watch->page->plan;
    struct run_plan plan = run_plan_of(page);
    int64_t now_ns = hf__now_ns();

    if (plan.term_ns == HF_NEVER)
        return hf__time_add(now_ns, NOT_YET_MS * HF__NS_PER_MS);
    if (now_ns < plan.term_ns)
        return plan.term_ns;
    if (run_page_begin(page, &plan, now_ns))
        begin(watch, plan.cause);
    plan = run_plan_of(page);
    if (page->on_loss == RUN_LOSS_WARN)
        return HF_NEVER;
    if (hf__now_ns() < plan.kill_ns)
        return plan.kill_ns;
    (void)send_signal(watch, SIGKILL);
    return hf__time_add(now_ns, NOT_YET_MS * HF__NS_PER_MS);
}

enum keep_end keep_watch(struct keep_watch *watch)
{
    int lost_fd = watch->lease != NULL ? hf_lease_fd(watch->lease) : -1;

    for (;;) {
        int64_t next_ns = act(watch);
        struct pollfd fds[] = {{.fd = watch->script_fd, .events = POLLIN},
                               {.fd = watch->end_fd, .events = POLLIN},
                               {.fd = lost_fd, .events = POLLIN}};

        (void)hf__poll_until(fds, 3, next_ns);
        if (is_ready(watch->script_fd))
            return KEEP_SCRIPT_ENDED;
        if (is_ready(watch->end_fd))
            return KEEP_TOLD_TO_END;
        if (is_ready(lost_fd)) {
            run_page_order(&watch->page->plan, RUN_LOST);
            lost_fd = -1;
        }
    }
}

union life_message {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

void keep_share_life(int link_fd, int life_fd)
{
    union life_message control = {.space = {0}};
    char byte = 'l';
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};

    control.header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &life_fd, sizeof life_fd);
    if (life_fd >= 0 && sendmsg(link_fd, &message, MSG_NOSIGNAL) < 0)
        cli_error("the watchdog cannot hold the lock: %s", strerror(errno));
}

/* Takes the descriptor, and keeps it to the end. False: the keeper is gone. */
static bool take_life(int link_fd)
{
    union life_message control;
    char byte;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};

    return recvmsg(link_fd, &message, MSG_CMSG_CLOEXEC) > 0;
}

/* Before the lock is taken there is no deadline, and nothing to signal the script about. If the
 * script ends then, the keeper is told to end: it would wait for a lock that nobody needs. */
_Noreturn void keep_watchdog(struct keep_watch *watch, pid_t keeper)
{
    enum keep_end end;
    bool granted;

    (void)setsid();
    (void)prctl(PR_SET_NAME, "holdfast-watch");
    do
        end = keep_watch(watch);
    while (end == KEEP_TOLD_TO_END && take_life(watch->end_fd));
    granted = atomic_load(&watch->page->plan.deadline_ns) != HF_NEVER;
    if (end == KEEP_SCRIPT_ENDED && !granted && getppid() == keeper)
        (void)cli_kill(keeper, SIGTERM);
    if (end == KEEP_TOLD_TO_END && granted && !atomic_load(&watch->page->done)) {
        watch->end_fd = -1;
        run_page_order(&watch->page->plan, RUN_ORPHANED);
        (void)keep_watch(watch);
    }
    _exit(0);
}
