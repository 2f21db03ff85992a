/* test_writers.c - 64 processes append to one file with random tokens.
 *
 * With the fence: the tokens in the file never decrease, and every line that was acknowledged is
 * there, once and whole. The same without the fence must break that, or the test shows nothing.
 * With pauses, because other tests run beside it; in its long form (run: also long) for a
 * minute. */
#include "fence/fence.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { FENCED_S = 5, FENCED_LONG_S = 60 };
enum { WRITERS = 64, CONTROL_S = 1, TOKEN_SPREAD = 400, LINE_SIZE = 64, PAUSE_MAX_US = 30000 };

/* Shared by all processes. */
struct tally {
    uint64_t acknowledged[WRITERS];
    uint64_t refused[WRITERS];
};

static char dir[64];
static char path[128];
static struct tally *tally;

static bool append_plainly(const char *line)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line);

    if (fd >= 0)
        (void)close(fd);
    return ok;
}

/* A token drawn some time ago: some are high, most are soon too low. */
static void write_on(int writer, bool fenced, int64_t start_ns, int64_t end_ns)
{
    uint64_t random = (uint64_t)writer * 7919 + 1;
    char line[LINE_SIZE];
    struct hf_error err;

    for (uint64_t n = 0; hf__now_ns() < end_ns; n++) {
        uint64_t token;
        struct hf_fence_pass pass = {.size = sizeof pass};
        enum hf_status status;

        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        token = 1 + (uint64_t)((hf__now_ns() - start_ns) / HF__NS_PER_MS) +
                (random >> 40) % TOKEN_SPREAD;
        pass.token = token;
        (void)snprintf(line, sizeof line, "%020" PRIu64 " %02d %010" PRIu64 "\n", token, writer,
                       tally->acknowledged[writer]);
        if (!fenced)
            status = append_plainly(line) ? HF_OK : HF_UNREACHABLE;
        else
            status = hf_fence_append(path, &pass, line, strlen(line), &err);
        if (status == HF_OK)
            tally->acknowledged[writer]++;
        else if (status == HF_STALE)
            tally->refused[writer]++;
        else
            _exit(1);
        if (fenced)
            (void)usleep((useconds_t)((random >> 20) % PAUSE_MAX_US));
    }
    _exit(0);
}

static void run_writers(bool fenced, int seconds)
{
    int64_t start_ns = hf__now_ns();
    pid_t pids[WRITERS];

    memset(tally, 0, sizeof *tally);
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            write_on(i, fenced, start_ns, start_ns + seconds * HF__NS_PER_S);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* How often the token decreases from line to line; checks that no line is missing or doubled. */
static uint64_t check_history(void)
{
    uint64_t next[WRITERS] = {0};
    uint64_t last = 0;
    uint64_t falls = 0;
    char line[LINE_SIZE];
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t token;
        uint64_t n;
        unsigned writer;

        assert_int_equal(sscanf(line, "%" SCNu64 " %u %" SCNu64 "\n", &token, &writer, &n), 3);
        assert_true(writer < WRITERS && n == next[writer]);
        next[writer]++;
        falls += token < last;
        last = token;
    }
    (void)fclose(file);
    for (int i = 0; i < WRITERS; i++)
        assert_true(next[i] == tally->acknowledged[i]);
    return falls;
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "%s/holdfast-fence-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED || mkdtemp(dir) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/history", dir);
    return 0;
}

static int teardown(void **state)
{
    char sidecar[160];

    (void)state;
    (void)snprintf(sidecar, sizeof sidecar, "%s/.history.fence", dir);
    (void)unlink(sidecar);
    (void)unlink(path);
    return rmdir(dir);
}

static void fenced(void **state)
{
    uint64_t done = 0;
    uint64_t refused = 0;

    (void)state;
    run_writers(true, getenv("HOLDFAST_LONG") != NULL ? FENCED_LONG_S : FENCED_S);
    assert_int_equal(check_history(), 0);
    for (int i = 0; i < WRITERS; i++) {
        done += tally->acknowledged[i];
        refused += tally->refused[i];
    }
    print_message("# %" PRIu64 " admitted, %" PRIu64 " refused\n", done, refused);
    assert_true(done > 0 && refused > 0);
    (void)unlink(path);
}

static void without_the_fence(void **state)
{
    (void)state;
    run_writers(false, CONTROL_S);
    assert_true(check_history() > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fenced),
        cmocka_unit_test(without_the_fence),
    };

    return cmocka_run_group_tests_name("fence writers", tests, setup, teardown);
}
