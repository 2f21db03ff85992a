/* tree.c - find and signal all descendants of a process.
 *
 * /proc/PID/task/TID/children names the children of one thread. The kernel does not promise a full
 * list while children exit, so one walk can miss somebody: whoever must get all of them repeats
 * the walk until waitpid(2) says that there is no child left. That answer is exact, because orphans
 * come to the root, which is a subreaper.
 *
 * No memory is allocated here: the watchdog is a forked child. */
#include "cli/run/run.h"

#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum {
    PATH_SIZE = 64,    /* of a path below /proc */
    CHUNK_SIZE = 4096, /* read at once from a directory or a `children` file */
    STAT_SIZE = 512    /* the part of /proc/PID/stat that has the parent */
};

typedef void number_fn(pid_t number, void *data);

/* One process while its children are collected. */
struct visit {
    struct run_tree *tree;
    const struct run_foreign *foreign;
    pid_t pid;
    bool no_children_files;
    bool blind; /* something that is there could not be read */
};

static bool each_number_in(const char *directory, number_fn *fn, void *data);
static void visit_children(struct visit *visit, pid_t pid);
static void visit_thread(pid_t thread, void *data);
static bool proc_is_ours(void);
static pid_t parent_of(pid_t pid);
static ssize_t read_small_file(const char *path, char *buf, size_t size);

/* Why a file below /proc cannot be read: its process has ended. Any other reason
 * leaves us blind. */
static bool is_gone(int error)
{
    return error == ENOENT || error == ESRCH;
}

/* The tree's list is also the queue of those whose children are still to be read. The watchdog,
 * which is not listed, is looked at right after the root. */
bool run_tree_find(struct run_tree *tree, pid_t root, const struct run_foreign *foreign)
{
    struct visit visit = {.tree = tree, .foreign = foreign, .pid = root};
    char path[PATH_SIZE];

    tree->root = root;
    tree->count = 0;
    if (!proc_is_ours())
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)root);
    if (!each_number_in(path, visit_thread, &visit))
        return false;
    if (visit.no_children_files)
        return run_tree_find_by_stat(tree, root, foreign);
    if (foreign != NULL && foreign->watchdog > 0)
        visit_children(&visit, foreign->watchdog);
    for (size_t i = 0; i < tree->count; i++)
        visit_children(&visit, tree->list[i].pid);
    return !visit.blind;
}

static void visit_children(struct visit *visit, pid_t pid)
{
    char path[PATH_SIZE];

    visit->pid = pid;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    if (!each_number_in(path, visit_thread, visit) && !is_gone(errno))
        visit->blind = true;
}

/* A pass over all processes; see run_tree_find_by_stat. */
static void visit_process(pid_t pid, void *data)
{
    struct visit *visit = data;
    struct run_tree *tree = visit->tree;
    pid_t parent = parent_of(pid);
    bool inside;

    if (parent < 0 && !is_gone(errno))
        visit->blind = true;
    inside = parent == tree->root || (visit->foreign != NULL && visit->foreign->watchdog > 0 &&
                                      parent == visit->foreign->watchdog);
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->list[i].pid == pid)
            return;
        if (tree->list[i].pid == parent)
            inside = true;
    }
    if (inside)
        run_tree_add(tree, visit->foreign, pid, parent);
}

bool run_tree_find_by_stat(struct run_tree *tree, pid_t root, const struct run_foreign *foreign)
{
    struct visit visit = {.tree = tree, .foreign = foreign};
    size_t before;

    tree->root = root;
    tree->count = 0;
    if (!proc_is_ours())
        return false;
    do {
        before = tree->count;
        if (!each_number_in("/proc", visit_process, &visit))
            return false;
    } while (tree->count > before);
    return !visit.blind;
}

/* A process deep in the tree is reaped by its own parent, and its number may then be given to a
 * stranger. So the process is pinned by a descriptor first, and then asked for its parent. False
 * with errno. */
static bool signal_pinned(const struct run_tree *tree, const struct run_process *process,
                          int number)
{
    int fd = pidfd_open(process->pid, 0);
    pid_t parent;
    int error;
    int sent = -1;

    if (fd < 0 && errno != ENOSYS)
        return false;
    parent = parent_of(process->pid);
    errno = ESRCH;
    if (parent == process->parent || parent == tree->root)
        sent = fd >= 0 ? pidfd_send_signal(fd, number, NULL, 0) : cli_kill(process->pid, number);
    error = errno;
    if (fd >= 0)
        (void)close(fd);
    errno = error;
    return sent == 0;
}

/* A child of our own keeps its number until we reap it, and is reached without any descriptor. */
pid_t run_tree_signal(const struct run_tree *tree, int number)
{
    bool ours = tree->root == getpid();
    pid_t refused = 0;

    for (size_t i = 0; i < tree->count; i++) {
        const struct run_process *process = &tree->list[i];

        if (!(ours && process->parent == tree->root ? cli_kill(process->pid, number) == 0
                                                    : signal_pinned(tree, process, number)) &&
            errno == EPERM)
            refused = process->pid;
    }
    return refused;
}

void run_tree_describe(char *out, size_t size, pid_t pid)
{
    char path[PATH_SIZE];
    char comm[PATH_SIZE];
    ssize_t len;

    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    len = read_small_file(path, comm, sizeof comm);
    if (len <= 0) {
        (void)snprintf(out, size, "pid %d", (int)pid);
        return;
    }
    comm[strcspn(comm, "\n")] = '\0';
    (void)snprintf(out, size, "pid %d (%s)", (int)pid, comm);
}

/* Reads the children of one thread of visit->pid. */
static void visit_thread(pid_t thread, void *data)
{
    struct visit *visit = data;
    char path[PATH_SIZE];
    char buf[CHUNK_SIZE];
    ssize_t got;
    pid_t number = 0;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)visit->pid, (int)thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENOENT && visit->pid == visit->tree->root)
            visit->no_children_files = true;
        if (!is_gone(errno))
            visit->blind = true;
        return;
    }
    while ((got = read(fd, buf, sizeof buf)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (buf[i] >= '0' && buf[i] <= '9') {
                number = number * 10 + (buf[i] - '0');
            } else if (number > 0) {
                run_tree_add(visit->tree, visit->foreign, number, visit->pid);
                number = 0;
            }
        }
    }
    if (got < 0 && !is_gone(errno))
        visit->blind = true;
    (void)close(fd);
}

void run_tree_add(struct run_tree *tree, const struct run_foreign *foreign, pid_t pid, pid_t parent)
{
    if (tree->count == RUN_TREE_MAX || (foreign != NULL && pid == foreign->watchdog))
        return;
    for (size_t i = 0; foreign != NULL && i < foreign->count; i++) {
        if (foreign->list[i] == pid)
            return;
    }
    tree->list[tree->count++] = (struct run_process){.pid = pid, .parent = parent};
}

/* Calls fn for each entry of a directory whose name is a number. opendir(3) would allocate. False,
 * with errno, if it cannot be read. */
static bool each_number_in(const char *directory, number_fn *fn, void *data)
{
    _Alignas(struct dirent64) char buf[CHUNK_SIZE];
    ssize_t got;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error;

    if (fd < 0)
        return false;
    while ((got = getdents64(fd, buf, sizeof buf)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)(buf + at);
            uint64_t number;

            if (hf__parse_u64(entry->d_name, &number))
                fn((pid_t)number, data);
            at += entry->d_reclen;
        }
    }
    error = errno;
    (void)close(fd);
    errno = error;
    return got == 0;
}

/* Numbers in the /proc of another PID namespace mean other processes here. It names us by all our
 * numbers, from its own namespace down to ours: if it is ours, there is one. */
static bool proc_is_ours(void)
{
    char text[CHUNK_SIZE];
    uint64_t number;
    ssize_t len = readlink("/proc/self", text, sizeof text - 1);
    char *numbers;

    errno = ENOENT;
    if (len <= 0)
        return false;
    text[len] = '\0';
    if (!hf__parse_u64(text, &number) || (pid_t)number != getpid() ||
        read_small_file("/proc/self/status", text, sizeof text) < 0)
        return false;
    numbers = strstr(text, "\nNSpid:\t");
    if (numbers == NULL)
        return true; /* a kernel before 4.1 */
    numbers += strlen("\nNSpid:\t");
    numbers[strcspn(numbers, "\n")] = '\0';
    return strchr(numbers, '\t') == NULL;
}

/* -1, with errno, if it cannot be read. The name in brackets may itself hold
 * brackets and blanks. */
static pid_t parent_of(pid_t pid)
{
    char path[PATH_SIZE];
    char text[STAT_SIZE];
    ssize_t len;
    const char *end;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    len = read_small_file(path, text, sizeof text);
    if (len < 0)
        return -1;
    end = strrchr(text, ')');
    errno = ESRCH;
    if (end == NULL || strlen(end) < 5)
        return -1;
    return (pid_t)strtol(end + 4, NULL, 10);
}

static ssize_t read_small_file(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;
    int error;

    if (fd < 0)
        return -1;
    got = read(fd, buf, size - 1);
    error = errno;
    (void)close(fd);
    errno = error;
    if (got >= 0)
        buf[got] = '\0';
    return got;
}
