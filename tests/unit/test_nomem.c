/* test_nomem.c - the N-th allocation fails, for all N: every call says so or succeeds, nothing is
 * lost or leaked, and the store is as good as before.
 *
 * The linker puts the functions below before the system's (see the Makefile), in the library and in
 * this program alike. What may be short counts: memory, threads, descriptors of the keeper.
 */
#include "../support/check.h"
#include <holdfast.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The allocation that fails, counted down; 0: none. failed: it was reached. */
static atomic_int countdown;
static atomic_bool failed;

static bool strike(void)
{
    int left = atomic_load(&countdown);

    while (left > 0)
        if (atomic_compare_exchange_weak(&countdown, &left, left - 1)) {
            if (left > 1)
                return false;
            atomic_store(&failed, true);
            errno = ENOMEM;
            return true;
        }
    return false;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
DIR *__real_opendir(const char *path);
DIR *__real_fdopendir(int fd);
int __real_eventfd(unsigned start, int flags);
int __real_timerfd_create(int clock, int flags);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *data);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);
int __wrap_asprintf(char **out, const char *format, ...);
int __wrap___asprintf_chk(char **out, int flag, const char *format, ...);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_fdopendir(int fd);
int __wrap_eventfd(unsigned start, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *data);

void *__wrap_malloc(size_t size)
{
    return strike() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return strike() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return strike() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return strike() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t len)
{
    return strike() ? NULL : __real_strndup(text, len);
}

int __wrap_asprintf(char **out, const char *format, ...)
{
    va_list args;
    int len;

    if (strike())
        return -1;
    va_start(args, format);
    len = vasprintf(out, format, args);
    va_end(args);
    return len;
}

int __wrap___asprintf_chk(char **out, int flag, const char *format, ...)
{
    va_list args;
    int len;

    (void)flag;
    if (strike())
        return -1;
    va_start(args, format);
    len = vasprintf(out, format, args);
    va_end(args);
    return len;
}

DIR *__wrap_opendir(const char *path)
{
    return strike() ? NULL : __real_opendir(path);
}

DIR *__wrap_fdopendir(int fd)
{
    return strike() ? NULL : __real_fdopendir(fd);
}

int __wrap_eventfd(unsigned start, int flags)
{
    return strike() ? -1 : __real_eventfd(start, flags);
}

int __wrap_timerfd_create(int clock, int flags)
{
    return strike() ? -1 : __real_timerfd_create(clock, flags);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *data)
{
    return strike() ? EAGAIN : __real_pthread_create(thread, attr, main, data);
}

/* A folder for the store; another for every N, where it matters that the store is new. */
static char dir[256];
static char url[300];

static void new_store(void)
{
    check_temp_dir(dir, sizeof dir);
    (void)snprintf(url, sizeof url, "file:%s/store?shared=group", dir);
}

static int descriptors(void)
{
    DIR *folder = __real_opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count;
}

static bool see(const struct hf_lock_info *info, void *data)
{
    (void)info;
    (void)data;
    return true;
}

/* Every N until no allocation is left to fail: what the scenario does may be refused for want of
 * memory, and for nothing else. */
static void for_all_n(bool fresh, bool (*scenario)(void))
{
    for (int n = 1;; n++) {
        int before;

        if (fresh || n == 1)
            new_store();
        before = descriptors();
        atomic_store(&failed, false);
        atomic_store(&countdown, n);
        check_row(scenario(), n);
        atomic_store(&countdown, 0);
        check_row(descriptors() == before, n);
        check_row(scenario(), n); /* and now it works, in the very same store */
        if (fresh)
            check_remove_dir(dir);
        if (!atomic_load(&failed)) {
            print_message("# %d allocations\n", n - 1);
            check_row(n > 1, n);
            break;
        }
        assert_true(n < 1000);
    }
    if (!fresh)
        check_remove_dir(dir);
}

/* HF_NOMEM only if an allocation failed, and success whenever none did. */
static bool fair(enum hf_status status, const struct hf_error *err)
{
    if (status == HF_OK)
        return true;
    if (status == HF_NOMEM && err->code == HF_NOMEM && err->text[0] != '\0')
        return atomic_load(&failed);
    print_error("%s: %s\n", hf_status_name(status), err->text);
    return false;
}

static bool open_and_close(void)
{
    struct hf_store *store;
    struct hf_error err;
    enum hf_status status = hf_open(url, &store, &err);

    if ((status == HF_OK) != (store != NULL))
        return false;
    hf_close(store);
    return fair(status, &err);
}

static bool with_lease(struct hf_store *store, const struct hf_acquire_options *options)
{
    struct hf_lease *lease;
    struct hf_error err;
    enum hf_status status = hf_acquire(store, "job", options, &lease, &err);
    bool good = fair(status, &err);

    if (status != HF_OK)
        return good && lease == NULL;
    (void)hf_lease_fd(lease); /* -1 for want of a descriptor is allowed */
    good = good && fair(hf_renew(lease, 0, &err), &err);
    good = good && fair(hf_keep(lease, &err), &err);
    good = good && fair(hf_list(store, "", see, NULL, &err), &err);
    good = good && fair(hf_inspect(store, "job", see, NULL, &err), &err);
    good = good && hf_lease_remaining_ms(lease) > 0;
    /* Giving back always works. */
    return hf_release(lease, &err) == HF_OK && good;
}

static bool a_whole_life(void)
{
    struct hf_acquire_options by_hand = {.size = sizeof by_hand, .no_keeper = true};
    struct hf_store *store;
    struct hf_error err;
    bool good;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    good = with_lease(store, NULL) && with_lease(store, &by_hand);
    hf_close(store);
    return good;
}

/* More leases than the keeper's heap has room for, so that it has to grow. */
static bool many_leases(void)
{
    enum { LEASES = 20 };
    struct hf_lease *leases[LEASES] = {0};
    struct hf_store *store;
    struct hf_error err;
    bool good = true;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    for (int i = 0; i < LEASES && good; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "job%d", i);
        good = fair(hf_acquire(store, name, NULL, &leases[i], &err), &err);
    }
    for (int i = 0; i < LEASES; i++)
        if (leases[i] != NULL)
            good = hf_release(leases[i], &err) == HF_OK && good;
    hf_close(store);
    return good;
}

/* Waiting costs memory too. The wait ends by itself: nobody gives the lock back. */
static bool a_wait(void)
{
    struct hf_acquire_options options = {.size = sizeof options, .wait_ms = 2};
    struct hf_store *store;
    struct hf_store *other = NULL;
    struct hf_lease *lease = NULL;
    struct hf_lease *late = NULL;
    struct hf_error err;
    bool good;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    good = fair(hf_open(url, &other, &err), &err);
    if (other != NULL && fair(hf_acquire(store, "job", NULL, &lease, &err), &err) &&
        lease != NULL) {
        enum hf_status status = hf_acquire(other, "job", &options, &late, &err);

        good = good && late == NULL && (status == HF_BUSY || fair(status, &err));
        good = hf_release(lease, &err) == HF_OK && good;
        /* Nothing of the wait is left in the way. */
        status = hf_acquire(other, "job", NULL, &late, &err);
        good = good && fair(status, &err);
        good = hf_release(late, &err) == HF_OK && good;
    }
    hf_close(other);
    hf_close(store);
    return good;
}

static bool detached(void)
{
    struct hf_acquire_options options = {.size = sizeof options, .detached = true};
    char owner[HF_OWNER_LEN + 1];
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;
    uint64_t token;
    bool good;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    good = fair(hf_acquire(store, "job", &options, &lease, &err), &err);
    if (lease != NULL) {
        memcpy(owner, hf_lease_owner(lease), sizeof owner);
        token = hf_lease_token(lease);
        hf_leave(lease);
        good = good && fair(hf_adopt(store, "job", owner, token, &lease, &err), &err);
        if (lease == NULL) /* now there is memory again */
            good = good && hf_adopt(store, "job", owner, token, &lease, &err) == HF_OK;
        good = good && hf_release(lease, &err) == HF_OK;
    }
    hf_close(store);
    return good;
}

/* A bucket that splits: the table of remembered pages may fail to be made, which costs time
 * only. */
static bool growing(void)
{
    enum { LEASES = 200 };
    struct hf_acquire_options options = {.size = sizeof options, .no_keeper = true};
    struct hf_lease *leases[LEASES] = {0};
    struct hf_store *store;
    struct hf_error err;
    bool good = true;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    for (int i = 0; i < LEASES && good; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "g%d", i);
        good = fair(hf_acquire(store, name, &options, &leases[i], &err), &err);
    }
    for (int i = 0; i < LEASES; i++)
        if (leases[i] != NULL)
            good = hf_release(leases[i], &err) == HF_OK && good;
    hf_close(store);
    return good;
}

static bool traced(void)
{
    bool good;

    (void)setenv("HOLDFAST_TRACE", "1", 1);
    good = a_whole_life();
    (void)unsetenv("HOLDFAST_TRACE");
    return good;
}

/* hf_close tells every lease, whatever is short. */
static bool closed_with_leases(void)
{
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;
    bool good;

    if (hf_open(url, &store, &err) != HF_OK)
        return fair(err.code, &err);
    good = fair(hf_acquire(store, "job", NULL, &lease, &err), &err);
    hf_close(store);
    if (lease != NULL)
        good = good && hf_lease_loss(lease) == HF_LOSS_CLOSED;
    return (lease == NULL || hf_release(lease, &err) == HF_LOST) && good;
}

static void write_file(const char *name, const char *text)
{
    char path[400];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/store/%s", dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

/* A slot file of another boot without a token floor is refused, because nobody knows how far its
 * tokens went. That it is there must not be overlooked for want of memory. */
static bool another_boot(void)
{
    struct hf_store *store = NULL;
    struct hf_error err;
    char path[300];
    enum hf_status status;

    (void)snprintf(path, sizeof path, "%s/store", dir);
    if (mkdir(path, 0700) == 0)
        write_file("slots-00000000-0000-0000-0000-000000000000", "old");
    status = hf_open(url, &store, &err);
    hf_close(store);
    return status == HF_CORRUPT || (status == HF_NOMEM && atomic_load(&failed));
}

static void another_boot_is_not_overlooked(void **state)
{
    (void)state;
    for_all_n(true, another_boot);
}

static uint64_t take_once(void)
{
    struct hf_store *store;
    struct hf_lease *lease;
    uint64_t token;

    assert_int_equal(hf_open(url, &store, NULL), HF_OK);
    assert_int_equal(hf_acquire(store, "job", NULL, &lease, NULL), HF_OK);
    token = hf_lease_token(lease);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    hf_close(store);
    return token;
}

/* A repair that cannot read what is there must not throw it away: tokens would go back. */
static void repair_does_not_forget(void **state)
{
    const uint64_t far = (uint64_t)1 << 60;

    (void)state;
    for (int n = 1; n == 1 || atomic_load(&failed); n++) {
        struct hf_error err;
        enum hf_status status;

        new_store();
        (void)take_once();
        assert_int_equal(hf_repair(url, far, &err), HF_OK);
        assert_true(take_once() > far);
        write_file("floor", "damaged"); /* from here on only the slot file knows */
        atomic_store(&failed, false);
        atomic_store(&countdown, n);
        status = hf_repair(url, 0, &err);
        atomic_store(&countdown, 0);
        check_row(fair(status, &err), n);
        if (status != HF_OK)
            check_row(hf_repair(url, 0, &err) == HF_OK, n);
        check_row(take_once() > far, n);
        check_remove_dir(dir);
    }
}

static void opening_a_new_store(void **state)
{
    (void)state;
    for_all_n(true, open_and_close);
}

static void opening_a_store_that_is_there(void **state)
{
    (void)state;
    for_all_n(false, open_and_close);
}

static void taking_and_giving_back(void **state)
{
    (void)state;
    for_all_n(false, a_whole_life);
}

static void taking_many(void **state)
{
    (void)state;
    for_all_n(false, many_leases);
}

static void waiting(void **state)
{
    (void)state;
    for_all_n(false, a_wait);
}

static void detached_and_adopted(void **state)
{
    (void)state;
    for_all_n(false, detached);
}

static void a_store_that_grows(void **state)
{
    (void)state;
    for_all_n(true, growing);
}

static void with_a_trace(void **state)
{
    int saved = dup(STDERR_FILENO);

    (void)state;
    assert_non_null(freopen("/dev/null", "w", stderr));
    for_all_n(false, traced);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
}

static void closing_with_live_leases(void **state)
{
    (void)state;
    for_all_n(false, closed_with_leases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_a_new_store),
        cmocka_unit_test(opening_a_store_that_is_there),
        cmocka_unit_test(another_boot_is_not_overlooked),
        cmocka_unit_test(repair_does_not_forget),
        cmocka_unit_test(taking_and_giving_back),
        cmocka_unit_test(taking_many),
        cmocka_unit_test(waiting),
        cmocka_unit_test(detached_and_adopted),
        cmocka_unit_test(a_store_that_grows),
        cmocka_unit_test(with_a_trace),
        cmocka_unit_test(closing_with_live_leases),
    };

    return cmocka_run_group_tests_name("nomem", tests, NULL, NULL);
}
