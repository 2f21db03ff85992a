/* cgroup.c - a cgroup of CMD's own, where we may make one.
 *
 * Whatever CMD starts is born in the cgroup, and one write to its cgroup.kill ends them all at
 * once: even those that fork faster than one can look, and those that belong to another user by
 * now. It needs no /proc. But a process may move to another cgroup if it has the right to, so the
 * tree is walked as well.
 *
 * It is made below the cgroup that we are in, so it has the same limits, and whoever looks after
 * ours (systemd, say) finds it there. Where we have no right to, we do without.
 *
 * All but run_cgroup_make is called by forked watchdogs as well, and is async-signal-safe. */
#include "cli/run/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    TEXT_SIZE = 4096,   /* of /proc/self/cgroup, and read at once from a list */
    NAMES_MAX = 8,      /* tried, if others are taken */
    DEPTH_MAX = 8,      /* of cgroups that CMD made below its own */
    LISTED_MAX = 4096,  /* processes of one cgroup */
    DISSOLVE_ROUNDS = 8 /* somebody may be forking while they are moved */
};

/* The kernel's PROC_CGROUP_INIT_INO. */
static const ino_t FIRST_NAMESPACE = 0xEFFFFFFB;

struct listing {
    size_t count;
    pid_t list[LISTED_MAX];
};

typedef void below_fn(int fd, const char *name, unsigned depth, void *data);

static bool in_first_namespace(void);
static bool own_path(char *out, size_t size);
static bool write_word(int dir, const char *file, const char *word);
static void list_processes(int dir, struct listing *listing);
static void each_below(int dir, unsigned depth, below_fn *fn, void *data);
static void signal_members(int dir, unsigned depth, int number);

void run_cgroup_make(struct run_cgroup *cgroup)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    struct statfs fs;
    size_t i = 0;

    cgroup->fd = -1;
    while (i < 2 && (statfs(mounts[i], &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC))
        i++;
    if (i == 2 || !own_path(cgroup->inside, sizeof cgroup->inside))
        return;
    cgroup->sure = in_first_namespace();
    for (int n = 0, tries = 0; n < NAMES_MAX && tries < NAMES_MAX; n++, tries++) {
        int len = snprintf(cgroup->path, sizeof cgroup->path, "%s%s/holdfast.%d.%d", mounts[i],
                           cgroup->inside, (int)getpid(), n);

        if (len < 0 || (size_t)len >= sizeof cgroup->path)
            return;
        if (mkdir(cgroup->path, 0755) == 0)
            break;
        if (errno != EEXIST)
            return;
        if (rmdir(cgroup->path) == 0) /* of a run that was killed, and had our number */
            n--;
    }
    cgroup->fd = open(cgroup->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool in_first_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/cgroup", &st) == 0 && st.st_ino == FIRST_NAMESPACE;
}

/* Another cgroup namespace's mount has our path as well, but means another place: CMD would be free
 * of the limits that we are under. What we see as the path of the new one tells them apart. */
bool run_cgroup_is_below(const struct run_cgroup *cgroup)
{
    char path[RUN_CGROUP_PATH_MAX];
    size_t len;

    if (cgroup->sure)
        return true;
    len = strlen(cgroup->inside);
    return own_path(path, sizeof path) && strncmp(path, cgroup->inside, len) == 0 &&
           strcmp(path + len, strrchr(cgroup->path, '/')) == 0;
}

bool run_cgroup_kill(const struct run_cgroup *cgroup)
{
    return cgroup->fd >= 0 && write_word(cgroup->fd, "cgroup.kill", "1");
}

void run_cgroup_signal(const struct run_cgroup *cgroup, int number)
{
    if (cgroup->fd >= 0)
        signal_members(cgroup->fd, 0, number);
}

static bool is_populated(int dir)
{
    char text[128] = "";
    int fd = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return false; /* it is gone */
    got = read(fd, text, sizeof text - 1);
    (void)close(fd);
    return got > 0 && strstr(text, "populated 1") != NULL;
}

static void remove_below(int fd, const char *name, unsigned depth, void *data)
{
    int parent = *(const int *)data;

    each_below(fd, depth, remove_below, &fd);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* We may be what the run above us left behind, and the last in its cgroup. */
static void remove_above(const struct run_cgroup *cgroup)
{
    const char *name = strrchr(cgroup->inside, '/');
    char path[RUN_CGROUP_PATH_MAX];

    if (name == NULL || strncmp(name, "/holdfast.", strlen("/holdfast.")) != 0)
        return;
    (void)snprintf(path, sizeof path, "%s", cgroup->path);
    *strrchr(path, '/') = '\0';
    (void)rmdir(path);
}

bool run_cgroup_remove(struct run_cgroup *cgroup)
{
    if (cgroup->fd < 0)
        return true;
    if (rmdir(cgroup->path) < 0 && errno == EBUSY) {
        if (is_populated(cgroup->fd))
            return false;
        /* Only empty ones, of a nested run that was killed for instance. */
        each_below(cgroup->fd, 0, remove_below, &cgroup->fd);
        (void)rmdir(cgroup->path);
    }
    remove_above(cgroup);
    (void)close(cgroup->fd);
    cgroup->fd = -1;
    return true;
}

void run_cgroup_dissolve(struct run_cgroup *cgroup)
{
    struct listing members;
    char number[16];

    for (int i = 0; i < DISSOLVE_ROUNDS && !run_cgroup_remove(cgroup); i++) {
        int parent = openat(cgroup->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        list_processes(cgroup->fd, &members);
        for (size_t j = 0; j < members.count && parent >= 0; j++) {
            (void)snprintf(number, sizeof number, "%d", (int)members.list[j]);
            (void)write_word(parent, "cgroup.procs", number);
        }
        if (parent >= 0)
            (void)close(parent);
    }
}

/* Our own path, as our namespace sees it, without a "/" at its end. */
static bool own_path(char *out, size_t size)
{
    char text[TEXT_SIZE];
    int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t got;
    const char *line;
    size_t len;

    if (fd < 0)
        return false;
    got = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[got > 0 ? got : 0] = '\0';
    line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (line == NULL)
        return false;
    line += strcspn(line, "/");
    len = strcspn(line, "\n");
    if (len == 1)
        len = 0;
    if (len >= size || line[len == 0 ? 1 : len] != '\n')
        return false;
    memcpy(out, line, len);
    out[len] = '\0';
    return true;
}

static bool write_word(int dir, const char *file, const char *word)
{
    int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);
    bool done;

    if (fd < 0)
        return false;
    done = write(fd, word, strlen(word)) > 0;
    (void)close(fd);
    return done;
}

/* Those of other PID namespaces, which we do not see, are listed as 0. */
static void list_processes(int dir, struct listing *listing)
{
    char text[TEXT_SIZE];
    ssize_t got;
    pid_t number = 0;
    int fd;

    listing->count = 0;
    fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    while ((got = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                number = number * 10 + (text[i] - '0');
                continue;
            }
            if (number > 0 && listing->count < LISTED_MAX)
                listing->list[listing->count++] = number;
            number = 0;
        }
    }
    (void)close(fd);
}

static void each_below(int dir, unsigned depth, below_fn *fn, void *data)
{
    _Alignas(struct dirent64) char buf[TEXT_SIZE];
    ssize_t got;

    if (depth >= DEPTH_MAX || lseek(dir, 0, SEEK_SET) < 0)
        return;
    while ((got = getdents64(dir, buf, sizeof buf)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)(buf + at);
            int fd;

            at += entry->d_reclen;
            if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                continue;
            fd = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (fd < 0)
                continue;
            fn(fd, entry->d_name, depth + 1, data);
            (void)close(fd);
        }
    }
}

static void signal_below(int fd, const char *name, unsigned depth, void *data)
{
    (void)name;
    signal_members(fd, depth, *(const int *)data);
}

static bool is_listed(int dir, pid_t pid)
{
    struct listing members;

    list_processes(dir, &members);
    for (size_t i = 0; i < members.count; i++) {
        if (members.list[i] == pid)
            return true;
    }
    return false;
}

/* A pid may have been given to another process since it was listed. So the process is pinned by a
 * descriptor, and then must still be listed. */
static void signal_members(int dir, unsigned depth, int number)
{
    struct listing members;

    list_processes(dir, &members);
    for (size_t i = 0; i < members.count; i++) {
        int fd = pidfd_open(members.list[i], 0);

        if (fd < 0)
            continue;
        if (is_listed(dir, members.list[i]))
            (void)pidfd_send_signal(fd, number, NULL, 0);
        (void)close(fd);
    }
    each_below(dir, depth, signal_below, &number);
}
