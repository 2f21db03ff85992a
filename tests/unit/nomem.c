/* nomem.c - allocations that fail when a test says so. */
#include "nomem.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

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

char dir[256];
char url[300];

void fail_nth(int n)
{
    atomic_store(&failed, false);
    atomic_store(&countdown, n);
}

void fail_none(void)
{
    atomic_store(&countdown, 0);
}

bool has_failed(void)
{
    return atomic_load(&failed);
}

void new_store(void)
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

void for_all_n(bool fresh, bool (*scenario)(void))
{
    for (int n = 1;; n++) {
        int before;

        if (fresh || n == 1)
            new_store();
        before = descriptors();
        fail_nth(n);
        check_row(scenario(), n);
        fail_none();
        check_row(descriptors() == before, n);
        check_row(scenario(), n); /* and now it works, in the very same store */
        if (fresh)
            check_remove_dir(dir);
        if (!has_failed()) {
            print_message("# %d allocations\n", n - 1);
            check_row(n > 1, n);
            break;
        }
        assert_true(n < 1000);
    }
    if (!fresh)
        check_remove_dir(dir);
}

bool fair(enum hf_status status, const struct hf_error *err)
{
    if (status == HF_OK)
        return true;
    if (status == HF_NOMEM && err->code == HF_NOMEM && err->text[0] != '\0')
        return has_failed();
    print_error("%s: %s\n", hf_status_name(status), err->text);
    return false;
}
