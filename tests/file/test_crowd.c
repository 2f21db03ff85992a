/* test_crowd.c - what it costs to look at a crowd: at a long line of waiters, at a client with many
 * locks, at a bucket in which somebody is stopped. */
#include "../support/faultkit.h"
#include "stores/file/slot.h"
#include "stores/file/ticket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/inotify.h>
#include <unistd.h>

#define NAME "crowd"

static bool count_one(const struct hf_lock_info *info, void *data)
{
    (void)info;
    ++*(int *)data;
    return true;
}

static int list(struct hf_store_base *base, const char *name, bool exact)
{
    struct hf_query query = {.name = name,
                             .exact = exact,
                             .deadline_ns = hf__now_ns() + KIT_PATIENCE_MS * HF__NS_PER_MS};
    struct hf_error err = {0};
    int count = 0;

    kit_expect(base->ops->list(base, &query, count_one, &count, &err), HF_OK, &err);
    return count;
}

/* Every waiter of a long line may show how long it is, once a second: each must not ask every other
 * one. The first are asked whether they live, the rest is taken for alive. */
static void a_long_line_is_estimated(void **state)
{
    enum { DEAD = 20, LINE = 100000 };
    struct hf_store_base *base = kit_open(kit_fast_dir());
    uint64_t hash = hf__name_hash(NAME);
    struct kit_hold hold;
    struct hf_error err = {0};
    struct bucket bucket;
    struct view view;
    struct view *found;

    (void)state;
    kit_expect(kit_take(base, NAME, 60000, 0, &hold, &err), HF_OK, &err);
    for (uint64_t tail = DEAD; tail <= LINE; tail += LINE - DEAD) {
        kit_expect(hf__page_lock(hf__file_of(base), hash, HF_NEVER, &bucket, NULL), HF_OK, NULL);
        kit_expect(hf__slot_see(hf__file_of(base), &bucket, NAME, &view, &found, &err), HF_OK,
                   &err);
        assert_non_null(found);
        kit_expect(hf__slot_set_queue(hf__file_of(base), found, view.head, view.head + tail, &err),
                   HF_OK, &err);
        hf__page_unlock(hf__file_of(base), &bucket);
        assert_int_equal(kit_waiters(base, NAME),
                         tail > WAITERS_COUNTED ? tail - WAITERS_COUNTED : 0);
    }
    kit_close(base);
}

/* How often files of a folder were opened since. */
static int opened(int notify_fd)
{
    char buf[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
    int count = 0;
    ssize_t got;

    while ((got = read(notify_fd, buf, sizeof buf)) > 0) {
        for (char *at = buf; at < buf + got;) {
            struct inotify_event event;

            memcpy(&event, at, sizeof event);
            count += (event.mask & IN_OPEN) != 0;
            at += sizeof event + event.len;
        }
    }
    return count;
}

/* A listing asks each client once whether it lives, however many locks it holds. */
static void a_client_is_asked_once(void **state)
{
    enum { LOCKS = 400 };
    const char *dir = kit_fast_dir();
    struct hf_store_base *base = kit_open(dir);
    struct hf_store_base *other = kit_open(dir);
    struct hf_error err = {0};
    char name[400];
    int notify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    (void)state;
    for (int i = 0; i < LOCKS; i++) {
        struct kit_hold hold;

        (void)snprintf(name, sizeof name, "lock-%d", i);
        kit_expect(kit_take(base, name, 60000, 0, &hold, &err), HF_OK, &err);
    }
    (void)snprintf(name, sizeof name, "%s/alive", dir);
    assert_true(inotify_add_watch(notify_fd, name, IN_OPEN | IN_CLOSE) >= 0);
    assert_int_equal(list(other, "", false), LOCKS);
    assert_int_equal(opened(notify_fd), 1);
    (void)close(notify_fd);
    kit_close(base);
    kit_close(other);
}

static void stop_inside(void *data)
{
    struct hf_store_base *base = kit_open(data);
    struct kit_hold hold;

    kit_plan = (struct kit_plan){.ops = KIT_PWRITE, .action = KIT_STOP_BEFORE, .at = 1};
    (void)kit_take_detached(base, NAME, 60000, &hold, NULL);
}

/* Somebody is stopped in the middle of a change: what the lock is like can be seen all the same. */
static void a_look_takes_no_lock(void **state)
{
    const char *dir = kit_fast_dir();
    struct hf_store_base *base = kit_open(dir);
    struct kit_hold hold;
    struct hf_error err = {0};
    pid_t pid;

    (void)state;
    kit_expect(kit_take_detached(base, NAME, 1, &hold, &err), HF_OK, &err);
    kit_sleep_ms(5); /* it expires, so that the other one takes it */
    pid = kit_spawn(stop_inside, (void *)(uintptr_t)dir);
    kit_wait_stopped(pid);
    assert_int_equal(list(base, NAME, true), 0);
    assert_int_equal(list(base, "", false), 0);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(kit_wait(pid), 0);
    assert_int_equal(list(base, NAME, true), 1);
    kit_close(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_line_is_estimated),
        cmocka_unit_test(a_client_is_asked_once),
        cmocka_unit_test(a_look_takes_no_lock),
    };

    return KIT_RUN(tests);
}
