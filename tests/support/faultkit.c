/* faultkit.c - places, children, random numbers, and a store to try things on. */
#include "faultkit.h"
#include "client/client.h"
#include "stores/file/page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIRS_MAX 4096

static uint64_t seed;
static char *dirs[DIRS_MAX];
static size_t dir_count;
static pid_t owner_pid;

uint64_t kit_seed(void)
{
    const char *given = getenv("HOLDFAST_SEED");

    if (seed == 0 && (given == NULL || !hf__parse_u64(given, &seed) || seed == 0)) {
        hf__random(&seed, sizeof seed);
        seed = seed % 1000000000 + 1;
    }
    return seed;
}

struct kit_rng kit_rng(uint64_t stream)
{
    return (struct kit_rng){(kit_seed() + stream * 0x9e3779b97f4a7c15u) | 1};
}

uint64_t kit_below(struct kit_rng *rng, uint64_t limit)
{
    /* splitmix64 */
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % limit;
}

long kit_rounds(long n)
{
    const char *longer = getenv("HOLDFAST_LONG");

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    n = n > 5 ? n / 5 : 1;
#endif
    return longer != NULL && strcmp(longer, "1") == 0 ? 10 * n : n;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st;
    (void)type;
    (void)walk;
    (void)remove(path);
    return 0;
}

void kit_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_all(void)
{
    if (getpid() != owner_pid)
        return;
    for (size_t i = 0; i < dir_count; i++) {
        kit_remove(dirs[i]);
        free(dirs[i]);
    }
}

static const char *dir_in(const char *tmp)
{
    char *path = NULL;

    assert_true(dir_count < DIRS_MAX);
    if (dir_count == 0) {
        owner_pid = getpid();
        (void)atexit(remove_all);
    }
    assert_true(asprintf(&path, "%s/holdfast-fault.XXXXXX", tmp != NULL ? tmp : "/tmp") > 0);
    assert_non_null(mkdtemp(path));
    return dirs[dir_count++] = path;
}

const char *kit_dir(void)
{
    return dir_in(getenv("TMPDIR"));
}

const char *kit_fast_dir(void)
{
    const char *tmp = getenv("TMPDIR");

    return dir_in(tmp == NULL && access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : tmp);
}

long kit_count(const char *path, const char *folder, const char *prefix)
{
    char full[512];
    struct dirent *entry;
    long found = 0;
    DIR *dir;

    (void)snprintf(full, sizeof full, "%s/%s", path, folder);
    dir = opendir(full);
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            (entry->d_name[0] != '.' || prefix[0] == '.') &&
            strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            found++;
    if (dir != NULL)
        (void)closedir(dir);
    return found;
}

const char *kit_slots(const char *path)
{
    static char full[600];
    struct dirent *entry;
    DIR *dir = opendir(path);

    full[0] = '\0';
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, "slots-", 6) == 0)
            (void)snprintf(full, sizeof full, "%s/%s", path, entry->d_name);
    if (dir != NULL)
        (void)closedir(dir);
    return full;
}

static void copy_file(const char *from, const char *to)
{
    char buf[16384];
    ssize_t got;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(in >= 0 && out >= 0);
    while ((got = read(in, buf, sizeof buf)) > 0)
        assert_int_equal(write(out, buf, (size_t)got), got);
    (void)close(in);
    (void)close(out);
}

void kit_copy(const char *from, const char *to)
{
    struct dirent *entry;
    struct stat st;
    DIR *dir = opendir(from);

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        char a[600];
        char b[600];

        (void)snprintf(a, sizeof a, "%s/%s", from, entry->d_name);
        (void)snprintf(b, sizeof b, "%s/%s", to, entry->d_name);
        if (stat(a, &st) == 0 && S_ISREG(st.st_mode))
            copy_file(a, b);
    }
    (void)closedir(dir);
}

long kit_open_fds(void)
{
    return kit_count("/proc/self", "fd", "");
}

pid_t kit_spawn(void (*fn)(void *), void *data)
{
    pid_t parent = getpid();
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(9);
        fn(data);
        _exit(0);
    }
    return pid;
}

int kit_wait(pid_t pid)
{
    int64_t until_ns = hf__now_ns() + 60 * HF__NS_PER_S;
    int status = 0;
    pid_t ended;

    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && hf__now_ns() < until_ns)
        hf__sleep_ns(200000);
    if (ended == 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
        fail_msg("process %d did not end within a minute", (int)pid);
    }
    return status;
}

void kit_wait_stopped(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    if (!WIFSTOPPED(status))
        fail_msg("process %d ended (status %x) instead of stopping", (int)pid, (unsigned)status);
}

void kit_die(const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dprintf(2, "# child %d: %s\n", (int)getpid(), text);
    _exit(1);
}

void kit_sleep_ms(int64_t ms)
{
    int64_t until_ns = hf__now_ns() + ms * HF__NS_PER_MS;
    int64_t left_ns;

    while ((left_ns = until_ns - hf__now_ns()) > 0)
        hf__sleep_ns(left_ns);
}

enum hf_status kit_try_open_within(const char *dir, int64_t patience_ms, struct hf_store_base **out,
                                   struct hf_error *err)
{
    const struct hf__file_sys *sys = getenv("KIT_MAPPED") != NULL ? &kit_mapped_sys : &kit_sys;
    char url[600];

    *out = NULL;
    (void)snprintf(url, sizeof url, "file:%s", dir);
    return hf__file_open_on(sys, &kit_host, url, kit_host.now_ns() + patience_ms * HF__NS_PER_MS,
                            out, err);
}

enum hf_status kit_try_open(const char *dir, struct hf_store_base **out, struct hf_error *err)
{
    return kit_try_open_within(dir, KIT_PATIENCE_MS, out, err);
}

struct hf_store_base *kit_open(const char *dir)
{
    struct hf_store_base *base;
    struct hf_error err = {0};

    kit_expect(kit_try_open(dir, &base, &err), HF_OK, &err);
    return base;
}

void kit_close(struct hf_store_base *base)
{
    base->ops->close(base, false);
}

struct hf_store *kit_open_client(const char *dir)
{
    struct hf_store *store;
    struct hf_error err = {0};
    char url[600];

    (void)snprintf(url, sizeof url, "file:%s", dir);
    kit_expect(hf__store_wrap(kit_open(dir), url, &store, &err), HF_OK, &err);
    return store;
}

enum hf_status kit_take_on(struct hf_store_base *base, const char *name,
                           const struct kit_terms *terms, struct kit_hold *out,
                           struct hf_error *err)
{
    unsigned char raw[HF_OWNER_LEN / 2];
    struct hf_grant grant = {0};
    int64_t now_ns = base->host->now_ns();
    int64_t patience_ms = terms->patience_ms != 0 ? terms->patience_ms : KIT_PATIENCE_MS;
    struct hf_claim claim = {.name = out->name,
                             .owner = out->owner,
                             .label = "host/1/test",
                             .ttl_ms = terms->ttl_ms,
                             .detached = terms->detached,
                             .kept = terms->detached ? HF_KEPT_NEVER : HF_KEPT_LATER,
                             .deadline_ns = now_ns + patience_ms * HF__NS_PER_MS,
                             .cancel_fd = -1};
    enum hf_status status;

    memset(out, 0, sizeof *out);
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    hf__random(raw, sizeof raw);
    hf__hex_encode(out->owner, raw, sizeof raw);
    out->ttl_ms = terms->ttl_ms;
    out->detached = terms->detached;
    if (terms->wait_ms != 0)
        claim.wait_until_ns =
            terms->wait_ms < 0 ? HF_NEVER : now_ns + terms->wait_ms * HF__NS_PER_MS;
    status = base->ops->acquire(base, &claim, &grant, err);
    out->token = status == HF_OK ? grant.token : 0;
    return status;
}

enum hf_status kit_take(struct hf_store_base *base, const char *name, uint32_t ttl_ms,
                        int64_t wait_ms, struct kit_hold *out, struct hf_error *err)
{
    return kit_take_on(base, name, &(struct kit_terms){.ttl_ms = ttl_ms, .wait_ms = wait_ms}, out,
                       err);
}

enum hf_status kit_take_detached(struct hf_store_base *base, const char *name, uint32_t ttl_ms,
                                 struct kit_hold *out, struct hf_error *err)
{
    return kit_take_on(base, name, &(struct kit_terms){.ttl_ms = ttl_ms, .detached = true}, out,
                       err);
}

static struct hf_claim claim_of(struct hf_store_base *base, const struct kit_hold *hold,
                                uint32_t ttl_ms)
{
    return (struct hf_claim){.name = hold->name,
                             .owner = hold->owner,
                             .token = hold->token,
                             .ttl_ms = ttl_ms,
                             .detached = hold->detached,
                             .kept = hold->detached ? HF_KEPT_NEVER : HF_KEPT_LATER,
                             .deadline_ns = base->host->now_ns() + KIT_PATIENCE_MS * HF__NS_PER_MS,
                             .cancel_fd = -1};
}

enum hf_status kit_renew(struct hf_store_base *base, const struct kit_hold *hold,
                         struct hf_error *err)
{
    struct hf_claim claim = claim_of(base, hold, hold->ttl_ms);
    struct hf_grant grant = {0};

    return base->ops->renew(base, &claim, &grant, err);
}

enum hf_status kit_drop(struct hf_store_base *base, const struct kit_hold *hold,
                        struct hf_error *err)
{
    struct hf_claim claim = claim_of(base, hold, 0);

    return base->ops->release(base, &claim, err);
}

uint64_t kit_pair(struct hf_store_base *base, const char *name)
{
    struct kit_hold hold;
    struct hf_error err = {0};

    kit_expect(kit_take(base, name, 10000, 3000, &hold, &err), HF_OK, &err);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    return hold.token;
}

static bool note_waiters(const struct hf_lock_info *info, void *data)
{
    *(uint64_t *)data = info->waiters;
    return true;
}

uint64_t kit_waiters(struct hf_store_base *base, const char *name)
{
    struct hf_query query = {.name = name,
                             .exact = true,
                             .deadline_ns = base->host->now_ns() + KIT_PATIENCE_MS * HF__NS_PER_MS};
    uint64_t waiters = 0;

    (void)base->ops->list(base, &query, note_waiters, &waiters, NULL);
    return waiters;
}

void kit_until_waiting(struct hf_store_base *base, const char *name, uint64_t count)
{
    int64_t until_ns = hf__now_ns() + 30 * HF__NS_PER_S;
    struct bucket bucket;

    while (kit_waiters(base, name) < count) {
        assert_true(hf__now_ns() < until_ns);
        hf__sleep_ns(100000);
    }
    /* It has drawn its ticket, and tells the holder before it unlocks the page. */
    if (hf__page_lock(hf__file_of(base), hf__name_hash(name), base->host->now_ns() + HF__NS_PER_S,
                      &bucket, NULL) == HF_OK)
        hf__page_unlock(hf__file_of(base), &bucket);
}

void kit_expect(enum hf_status got, enum hf_status want, const struct hf_error *err)
{
    if (got != want)
        fail_msg("%s instead of %s: %s", hf_status_name(got), hf_status_name(want),
                 err != NULL ? err->text : "");
}

int kit_begin(void **state)
{
    (void)state;
    (void)kit_seed();
    return 0;
}

int kit_finish(int failed)
{
    if (failed != 0)
        dprintf(2, "# to repeat: HOLDFAST_SEED=%llu\n", (unsigned long long)kit_seed());
    return failed != 0;
}
