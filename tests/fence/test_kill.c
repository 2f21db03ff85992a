/* test_kill.c - the file fence killed with SIGKILL: before every one of its system calls, at
 * random ones for 10,000 rounds, and at random instants.
 *
 * After each: the mark did not fall and covers the content, the file is the old one or the new one,
 * whole, and a lower token is refused.
 * run: late asan, run: slow */
#include "fence/fence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A process under ASan takes long to fork and to die, and the calls are the same. */
#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 500 };
#else
enum { ROUNDS = 10000 };
#endif
enum {
    INSTANTS = 300,
    CONTENT_MAX = 4000,
    CALLS_MAX = 64,
    LEFT_OVER_MAX = 3,
    WHOLE_BELOW = 300 /* bytes: longer writes are done in parts */
};

/* The real table, but the process dies before call number `left`. */
struct deadly {
    struct hf__fence_io io;
    int left;
};

static void step(const struct hf__fence_io *io)
{
    struct deadly *deadly = (struct deadly *)(uintptr_t)io;

    if (--deadly->left == 0)
        (void)kill(getpid(), SIGKILL);
}

/* One decorator per call, all alike. */
#define REAL (&hf__fence_system_io)
static int d_open_dir(const struct hf__fence_io *io, const char *path)
{
    step(io);
    return REAL->open_dir(REAL, path);
}
static int d_open(const struct hf__fence_io *io, int dir, const char *name, int flags, mode_t mode)
{
    step(io);
    return REAL->open(REAL, dir, name, flags, mode);
}
static int d_close(const struct hf__fence_io *io, int fd)
{
    step(io);
    return REAL->close(REAL, fd);
}
static int d_stat(const struct hf__fence_io *io, int dir, const char *name, struct stat *out)
{
    step(io);
    return REAL->stat(REAL, dir, name, out);
}
static int d_stat_fd(const struct hf__fence_io *io, int fd, struct stat *out)
{
    step(io);
    return REAL->stat_fd(REAL, fd, out);
}
static ssize_t d_read_link(const struct hf__fence_io *io, int dir, const char *name, char *out,
                           size_t size)
{
    step(io);
    return REAL->read_link(REAL, dir, name, out, size);
}
static ssize_t d_pread(const struct hf__fence_io *io, int fd, void *buf, size_t len, off_t at)
{
    step(io);
    return REAL->pread(REAL, fd, buf, len, at);
}
/* In parts, so that a write can also be cut in the middle. */
static ssize_t d_pwrite(const struct hf__fence_io *io, int fd, const void *buf, size_t len,
                        off_t at)
{
    step(io);
    if (len > WHOLE_BELOW) {
        ssize_t rc = REAL->pwrite(REAL, fd, buf, len / 2, at);

        step(io);
        return rc;
    }
    return REAL->pwrite(REAL, fd, buf, len, at);
}
static int d_truncate(const struct hf__fence_io *io, int fd, off_t size)
{
    step(io);
    return REAL->truncate(REAL, fd, size);
}
static int d_set_attributes(const struct hf__fence_io *io, int fd, const struct stat *like)
{
    step(io);
    return REAL->set_attributes(REAL, fd, like);
}
static int d_sync(const struct hf__fence_io *io, int fd, bool data_only)
{
    step(io);
    return REAL->sync(REAL, fd, data_only);
}
static int d_link(const struct hf__fence_io *io, int dir, int fd, const char *from, const char *to)
{
    step(io);
    return REAL->link(REAL, dir, fd, from, to);
}
static int d_rename(const struct hf__fence_io *io, int dir, const char *from, const char *to)
{
    step(io);
    return REAL->rename(REAL, dir, from, to);
}
static int d_unlink(const struct hf__fence_io *io, int dir, const char *name)
{
    step(io);
    return REAL->unlink(REAL, dir, name);
}
static int d_try_lock(const struct hf__fence_io *io, int fd)
{
    step(io);
    return REAL->try_lock(REAL, fd);
}
static void d_sleep_ns(const struct hf__fence_io *io, int64_t ns)
{
    step(io);
    REAL->sleep_ns(REAL, ns);
}

static const struct hf__fence_io deadly_io = {.open_dir = d_open_dir,
                                              .open = d_open,
                                              .close = d_close,
                                              .stat = d_stat,
                                              .stat_fd = d_stat_fd,
                                              .read_link = d_read_link,
                                              .pread = d_pread,
                                              .pwrite = d_pwrite,
                                              .truncate = d_truncate,
                                              .set_attributes = d_set_attributes,
                                              .sync = d_sync,
                                              .link = d_link,
                                              .rename = d_rename,
                                              .unlink = d_unlink,
                                              .try_lock = d_try_lock,
                                              .sleep_ns = d_sleep_ns};

struct content {
    size_t len;
    char bytes[CONTENT_MAX];
};

static char dir[64];
static char path[128];
static uint64_t random_state = 42;

static unsigned pick(unsigned below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(random_state >> 33) % below;
}

enum op { ENTER, WRITE, APPEND, RESET, OPS };

static enum hf_status run(const struct hf__fence_io *io, enum op op, uint64_t token,
                          const struct content *old, const struct content *new,
                          struct hf_error *err)
{
    struct hf_fence_pass pass = {.size = sizeof pass, .token = token, .issuer = "file:x"};

    switch (op) {
    case WRITE:
        return hf__fence_write(
            io, path, &pass,
            &(struct hf__fence_source){.data = new->bytes, .len = new->len, .fd = -1}, err);
    case APPEND:
        return hf__fence_append(io, path, &pass, new->bytes + old->len, new->len - old->len, err);
    case RESET:
        return hf__fence_reset(io, path, token, "file:x", "a test", err);
    case ENTER:
    case OPS:
        break;
    }
    return hf__fence_enter(io, path, &pass, err);
}

/* Fills new with what op makes of old. */
static void plan(enum op op, const struct content *old, struct content *new)
{
    size_t keep = op == WRITE ? 0 : old->len;

    *new = *old;
    if (op != WRITE && op != APPEND)
        return;
    new->len = keep + 1 +
               pick(CONTENT_MAX - (unsigned)keep < 900 ? CONTENT_MAX - (unsigned)keep - 1 : 900);
    for (size_t i = keep; i < new->len; i++)
        new->bytes[i] = (char)('a' + pick(26));
}

static void read_file(struct content *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, out->bytes, sizeof out->bytes) : 0;

    assert_true(fd >= 0 || errno == ENOENT);
    if (fd >= 0)
        (void)close(fd);
    out->len = (size_t)got;
}

static bool same(const struct content *a, const struct content *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* Runs op in a child that dies before call number cut; true if it came through. */
static bool killed_at(int cut, enum op op, uint64_t token, const struct content *old,
                      const struct content *new)
{
    struct deadly deadly = {.io = deadly_io, .left = cut};
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        struct hf_error err;

        _exit(run(&deadly.io, op, token, old, new, &err) == HF_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status))
        assert_int_equal(WEXITSTATUS(status), 0);
    return WIFEXITED(status);
}

static uint64_t mark_now(void)
{
    struct hf_fence_mark mark;
    struct hf_error err;

    assert_int_equal(hf_fence_read_mark(path, &mark, &err), HF_OK);
    return mark.token;
}

/* What a user relies on after the crash. Leaves *old as the file is, *token as the mark is. */
static void check(bool done, uint64_t tried, uint64_t *token, struct content *old,
                  const struct content *new)
{
    struct content now;
    struct hf_error err;
    uint64_t mark = mark_now();

    assert_true(mark == tried || mark == *token);
    if (done)
        assert_int_equal(mark, tried);
    if (mark > 0) /* takes back a half-done append */
        assert_int_equal(run(REAL, ENTER, mark, old, new, &err), HF_OK);
    read_file(&now);
    assert_true(same(&now, old) || same(&now, new));
    if (done)
        assert_true(same(&now, new));
    if (!same(old, new) && same(&now, new))
        assert_int_equal(mark, tried); /* never data without its mark */
    if (mark > 1) {
        assert_int_equal(run(REAL, WRITE, mark - 1, old, new, &err), HF_STALE);
        read_file(&now);
        assert_true(same(&now, old) || same(&now, new));
    }
    *old = now;
    *token = mark;
}

static int entries(void)
{
    DIR *d = opendir(dir);
    int count = 0;

    while (readdir(d) != NULL)
        count++;
    (void)closedir(d);
    return count - 2;
}

static void clear_dir(void)
{
    char name[512];
    DIR *d = opendir(dir);

    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            (void)snprintf(name, sizeof name, "%s/%s", dir, e->d_name);
            (void)unlink(name);
        }
    (void)closedir(d);
}

/* Memory is as good as a disk here: a killed process loses no page. And syncing
 * it costs nothing. */
static int setup(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "%s/holdfast-fence-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(dir) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/data", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    clear_dir();
    return rmdir(dir);
}

static void before_every_call(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2 * OPS; kind++)
        for (int cut = 1;; cut++) {
            enum op op = (enum op)(kind % OPS);
            struct content old = {.len = 0};
            struct content new;
            struct hf_error err;
            uint64_t token = 0;
            bool done;

            clear_dir();
            if (kind >= OPS) {
                plan(WRITE, &(struct content){.len = 0}, &old);
                assert_int_equal(run(REAL, WRITE, 7, &old, &old, &err), HF_OK);
                token = 7;
            }
            plan(op, &old, &new);
            done = killed_at(cut, op, 9, &old, &new);
            check(done, 9, &token, &old, &new);
            if (done)
                break;
            assert_true(cut < 4 * CALLS_MAX);
        }
}

static void ten_thousand_rounds(void **state)
{
    struct content old = {.len = 0};
    struct content new;
    uint64_t token = 0;

    (void)state;
    clear_dir();
    for (int round = 0; round < ROUNDS; round++) {
        enum op op = (enum op)pick(OPS);
        uint64_t tried = token + pick(3);
        bool done;

        if (op == APPEND && old.len > CONTENT_MAX - 200)
            op = WRITE;
        if (op == RESET && round % 50 != 0)
            op = WRITE;
        tried = tried == 0 ? 1 : tried;
        plan(op, &old, &new);
        done = killed_at(1 + (int)pick(CALLS_MAX), op, tried, &old, &new);
        check(done, tried, &token, &old, &new);
        assert_true(entries() <= LEFT_OVER_MAX); /* data, sidecar, and one that is reused */
    }
}

/* No table of calls: a child writes as fast as it can and is killed whenever. */
static void random_instants(void **state)
{
    struct hf_error err;

    (void)state;
    clear_dir();
    for (int round = 0; round < INSTANTS; round++) {
        uint64_t token = (uint64_t)round + 1;
        struct content now;
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
            struct hf_fence_pass pass = {.size = sizeof pass, .token = token};
            char line[64];

            for (;;) {
                (void)snprintf(line, sizeof line, "written with token %d\n", round + 1);
                if (hf_fence_write(path, &pass, line, strlen(line), &err) != HF_OK ||
                    hf_fence_append(path, &pass, line, strlen(line), &err) != HF_OK)
                    _exit(1);
            }
        }
        (void)usleep(200 + pick(3000));
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        if (mark_now() == 0)
            continue;
        assert_int_equal(run(REAL, ENTER, mark_now(), NULL, NULL, &err), HF_OK);
        read_file(&now);
        /* One line, or the line twice: nothing in between. */
        now.bytes[now.len] = '\0';
        if (now.len > 0) {
            size_t line = strcspn(now.bytes, "\n") + 1;

            assert_true(now.len == line ||
                        (now.len == 2 * line && memcmp(now.bytes, now.bytes + line, line) == 0));
            assert_true(strtoull(now.bytes + strlen("written with token "), NULL, 10) <=
                        mark_now());
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_every_call),
        cmocka_unit_test(ten_thousand_rounds),
        cmocka_unit_test(random_instants),
    };

    return cmocka_run_group_tests_name("fence kill", tests, setup, teardown);
}
