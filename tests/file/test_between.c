/* test_between.c - what others do between two steps of a change, one chosen moment at a time. */
#include "../support/steps.h"
#include "stores/file/map.h"
#include "stores/file/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define NAME "job"

/* What parent and children know. */
struct notes {
    atomic_int by_clock; /* waiters that were woken by the clock */
};

struct part {
    const char *dir;
    bool mapped;
    const char *step; /* at which it is killed */
    struct kit_hold hold;
    struct notes *notes;
};

static struct notes *counted; /* by this process */

static void count_wakes(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void count_wakes(const char *format, ...)
{
    char text[300];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (strstr(text, "is woken by the clock") != NULL)
        atomic_fetch_add(&counted->by_clock, 1);
}

static struct hf_store_base *open_part(const struct part *part)
{
    static struct hf_host host;
    struct hf_store_base *base = NULL;
    struct hf_error err = {0};
    char url[600];

    host = kit_host;
    host.log = count_wakes;
    counted = part->notes;
    (void)snprintf(url, sizeof url, "file:%s", part->dir);
    kit_expect(hf__file_open_on(part->mapped ? &kit_mapped_sys : &kit_sys, &host, url, HF_NEVER,
                                &base, &err),
               HF_OK, &err);
    return base;
}

static struct part new_part(bool mapped)
{
    struct part part = {.dir = kit_fast_dir(), .mapped = mapped};

    part.notes =
        mmap(NULL, sizeof *part.notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(part.notes != MAP_FAILED);
    return part;
}

static void run_to_its_death(void (*fn)(void *), struct part *part, const char *step)
{
    int status;

    part->step = step;
    status = kit_wait(kit_spawn(fn, part));
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("step %s was not met", step);
}

static struct file_store *store; /* whose steps are met */

/* ---- the file grows between two looks at its size ---- */

static int grown;

static void grow_when_size_seen(const char *step)
{
    const struct page page = {0};
    uint32_t page_no;

    if (strcmp(step, "size_seen") != 0)
        return;
    steps_hook = NULL;
    assert_int_equal(hf__page_append(store, &page, &page_no, NULL), HF_OK);
    assert_non_null(hf__map_page(store, page_no)); /* as another thread that has use for it */
    grown++;
}

static void a_file_that_grows_is_not_cut_off(void **state)
{
    struct hf_store_base *base;
    struct hf_error err = {0};
    struct kit_hold hold;

    (void)state;
    base = kit_open(kit_fast_dir());
    store = hf__file_of(base);
    if (!store->mapped) {
        kit_close(base);
        skip();
    }
    steps_hook = grow_when_size_seen;
    kit_expect(kit_take(base, NAME, 60000, 0, &hold, &err), HF_OK, &err);
    steps_hook = NULL;
    assert_int_equal(grown, 1);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    kit_close(base);
}

/* ---- a process dies in the middle of passing a lock on ---- */

static void wait_in_line(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = open_part(part);
    struct kit_hold hold;
    struct hf_error err = {0};

    if (kit_take(base, NAME, 60000, 20000, &hold, &err) != HF_OK ||
        kit_drop(base, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    kit_close(base);
}

static void break_and_die(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = open_part(part);
    const struct hf_revoke revoke = {.name = NAME,
                                     .token = part->hold.token,
                                     .by = "",
                                     .reason = "",
                                     .now = true,
                                     .deadline_ns = HF_NEVER};
    struct hf_broken broken;

    steps_signal_at(part->step, SIGKILL);
    (void)base->ops->revoke(base, &revoke, &broken, NULL);
}

static void release_and_die(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = open_part(part);

    steps_signal_at(part->step, SIGKILL);
    (void)kit_drop(base, &part->hold, NULL);
}

/* A third one, whom nobody watches, gives the lock of a living holder away. */
static void pass_on(bool mapped, void (*fn)(void *), const char *step)
{
    struct part part = new_part(mapped);
    struct hf_store_base *base = open_part(&part);
    struct hf_error err = {0};
    enum hf_status status;
    pid_t waiter;

    kit_expect(kit_take(base, NAME, 60000, 0, &part.hold, &err), HF_OK, &err);
    waiter = kit_spawn(wait_in_line, &part);
    kit_until_waiting(base, NAME, 1);
    run_to_its_death(fn, &part, step);
    status = kit_drop(base, &part.hold, &err); /* it may still be ours */
    if (status != HF_LOST)
        kit_expect(status, HF_OK, &err);
    assert_int_equal(kit_wait(waiter), 0);
    if (atomic_load(&part.notes->by_clock) != 0)
        fail_msg("after a death at %s the next one is woken by the clock", step);
    (void)kit_pair(base, NAME);
    kit_close(base);
}

static void a_death_amid_a_hand_over_leaves_nobody_asleep(void **state)
{
    static const char *const steps[] = {"pass_head", "pass_woken", "pass_swapped"};

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (int mapped = 0; mapped < 2; mapped++) {
            pass_on(mapped == 1, break_and_die, steps[i]);
            pass_on(mapped == 1, release_and_die, steps[i]);
        }
}

/* ---- a renewal that changes the ttl, and dies ---- */

static void renew_and_die(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = open_part(part);

    steps_signal_at(part->step, SIGKILL);
    (void)kit_renew(base, &part->hold, NULL);
}

static bool note_info(const struct hf_lock_info *info, void *data)
{
    struct hf_lock_info *out = data;

    *out = *info;
    return false;
}

/* The hold ends within this ttl, and says so. */
static void expect_ttl(struct hf_store_base *base, uint32_t ttl_ms)
{
    const struct hf_query query = {.name = NAME, .exact = true, .deadline_ns = HF_NEVER};
    struct hf_lock_info info = {.held = false};
    struct hf_error err = {0};

    kit_expect(base->ops->list(base, &query, note_info, &info, &err), HF_OK, &err);
    assert_true(info.held);
    assert_int_equal(info.ttl_ms, ttl_ms);
    assert_true(info.remaining_ms <= ttl_ms && info.remaining_ms > ttl_ms - 15000);
}

static void change_ttl(bool mapped, bool detached)
{
    const uint32_t ttls[] = {60000, 30000, 90000};
    struct part part = new_part(mapped);
    struct hf_store_base *base = open_part(&part);
    struct hf_error err = {0};
    uint32_t before = 120000;

    kit_expect(detached ? kit_take_detached(base, NAME, before, &part.hold, &err)
                        : kit_take(base, NAME, before, 0, &part.hold, &err),
               HF_OK, &err);
    for (size_t i = 0; i < sizeof ttls / sizeof *ttls; i++) {
        part.hold.ttl_ms = ttls[i];
        run_to_its_death(renew_and_die, &part, "renew_described");
        expect_ttl(base, before);
        run_to_its_death(renew_and_die, &part, "renew_swapped");
        expect_ttl(base, ttls[i]);
        kit_expect(kit_renew(base, &part.hold, &err), HF_OK, &err);
        expect_ttl(base, ttls[i]);
        before = ttls[i];
    }
    kit_expect(kit_drop(base, &part.hold, &err), HF_OK, &err);
    kit_close(base);
}

static void a_hold_has_the_old_ttl_or_the_new_one(void **state)
{
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        change_ttl(mapped == 1, true);
        change_ttl(mapped == 1, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_grows_is_not_cut_off),
        cmocka_unit_test(a_death_amid_a_hand_over_leaves_nobody_asleep),
        cmocka_unit_test(a_hold_has_the_old_ttl_or_the_new_one),
    };

    (void)setenv("KIT_MAPPED", "1", 1);
    return KIT_RUN(tests);
}
