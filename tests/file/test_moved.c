/* test_moved.c - a store that is moved, removed or replaced under those who use it. Others who open
 * its URL find another store there: what the old users hold is worth nothing, and they must hear of
 * it by whatever they do next.
 *
 * run: threads */
#include "../support/faultkit.h"
#include "stores/file/slot.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED   77
#define NOTICE_MS 50 /* after which every call notices */

/* A store below a parent of its own, so that the parent can go too. */
struct place {
    char parent[200];
    char dir[300];
    char aside[300];
};

static struct place new_place(void)
{
    struct place place;
    const char *base = kit_fast_dir();

    (void)snprintf(place.parent, sizeof place.parent, "%s/parent", base);
    (void)snprintf(place.dir, sizeof place.dir, "%s/store", place.parent);
    (void)snprintf(place.aside, sizeof place.aside, "%s/aside", base);
    assert_int_equal(mkdir(place.parent, 0700), 0);
    return place;
}

static void move_directory(const struct place *place)
{
    assert_int_equal(rename(place->dir, place->aside), 0);
}

static void move_parent(const struct place *place)
{
    assert_int_equal(rename(place->parent, place->aside), 0);
    assert_int_equal(mkdir(place->parent, 0700), 0);
}

static void remove_directory(const struct place *place)
{
    kit_remove(place->dir);
}

static void replace_by_copy(const struct place *place)
{
    move_directory(place);
    assert_int_equal(mkdir(place->dir, 0700), 0);
    kit_copy(place->aside, place->dir);
}

static void move_slot_file(const struct place *place)
{
    char aside[400];

    (void)snprintf(aside, sizeof aside, "%s/aside", place->dir);
    assert_int_equal(rename(kit_slots(place->dir), aside), 0);
}

static void delete_slot_file(const struct place *place)
{
    assert_int_equal(unlink(kit_slots(place->dir)), 0);
}

static void replace_slot_file(const struct place *place)
{
    char copy[300];
    char from[700];

    (void)snprintf(copy, sizeof copy, "%s", place->aside);
    assert_int_equal(mkdir(copy, 0700), 0);
    kit_copy(place->dir, copy);
    (void)snprintf(from, sizeof from, "%s", kit_slots(copy));
    assert_int_equal(rename(from, kit_slots(place->dir)), 0);
}

struct waiting {
    struct hf_store_base *base;
    enum hf_status status;
};

static void *wait_for_it(void *data)
{
    struct waiting *waiting = data;
    struct kit_hold hold;
    struct hf_error err = {0};

    waiting->status = kit_take(waiting->base, "job", 60000, 20000, &hold, &err);
    return NULL;
}

static bool count_one(const struct hf_lock_info *info, void *data)
{
    (void)info;
    ++*(int *)data;
    return true;
}

static void gone(void (*move)(const struct place *))
{
    struct place place = new_place();
    struct hf_query query = {.name = "", .deadline_ns = HF_NEVER};
    struct hf_store_base *base = kit_open(place.dir);
    struct waiting waiting = {.base = kit_open(place.dir)};
    struct hf_store_base *other;
    struct kit_hold hold;
    struct kit_hold theirs;
    struct hf_error err = {0};
    pthread_t thread;
    int count = 0;

    kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &waiting), 0);
    while (kit_waiters(base, "job") == 0)
        kit_sleep_ms(1);
    move(&place);
    kit_sleep_ms(NOTICE_MS);
    kit_expect(kit_take(base, "another", 60000, 0, &theirs, &err), HF_CORRUPT, &err);
    assert_non_null(strstr(err.text, "open the store again"));
    kit_expect(base->ops->list(base, &query, count_one, &count, &err), HF_CORRUPT, &err);
    kit_expect(kit_renew(base, &hold, &err), HF_LOST, &err);
    if (move == replace_by_copy || move == replace_slot_file) {
        kit_expect(kit_try_open(place.dir, &other, &err), HF_CORRUPT, &err);
        assert_non_null(strstr(err.text, "copy"));
        other = NULL;
    } else {
        other = kit_open(place.dir);
        (void)kit_pair(other, "something else");
    }
    kit_expect(kit_drop(base, &hold, &err), HF_LOST, &err);
    assert_int_equal(pthread_join(thread, NULL), 0);
    kit_expect(waiting.status, HF_CORRUPT, NULL);
    kit_close(base);
    kit_close(waiting.base);
    if (other != NULL)
        kit_close(other);
}

static void is_noticed(void **state)
{
    (void)state;
    gone(move_directory);
    gone(move_parent);
    gone(remove_directory);
    gone(replace_by_copy);
    gone(move_slot_file);
    gone(delete_slot_file);
    gone(replace_slot_file);
}

/* A holder that only keeps its lease hears of it at its next renewal, and not for want of time. */
static void a_keeper_hears_of_it(void **state)
{
    struct place place = new_place();
    struct hf_store *store = kit_open_client(place.dir);
    struct hf_acquire_options options = {.size = sizeof options, .ttl_ms = 6000};
    struct hf_lease *lease;
    struct hf_error err = {0};
    struct pollfd lost = {.events = POLLIN};

    (void)state;
    kit_expect(hf_acquire(store, "job", &options, &lease, &err), HF_OK, &err);
    lost.fd = hf_lease_fd(lease);
    move_directory(&place);
    assert_int_equal(hf__poll_until(&lost, 1, hf__now_ns() + 30 * HF__NS_PER_S), 1);
    assert_int_equal(hf_lease_loss(lease), HF_LOSS_FORGOTTEN);
    kit_expect(hf_release(lease, &err), HF_LOST, &err);
    hf_close(store);
}

/* There and back again: nobody else can have found a store there, and nothing is lost. */
static void back_in_place(void **state)
{
    struct place place = new_place();
    struct hf_store_base *base = kit_open(place.dir);
    struct kit_hold hold;
    struct hf_error err = {0};

    (void)state;
    kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
    move_directory(&place);
    assert_int_equal(rename(place.aside, place.dir), 0);
    kit_sleep_ms(NOTICE_MS);
    kit_expect(kit_renew(base, &hold, &err), HF_OK, &err);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    kit_close(base);
}

/* A program that locks itself in (chroot) after it opened the store has not moved the store. */
static void use_locked_in(void *data)
{
    const struct place *place = data;
    struct hf_store_base *base = kit_open(place->dir);
    struct kit_hold hold;
    struct hf_error err = {0};

    if (chroot(place->parent) != 0)
        _exit(SKIPPED);
    for (int i = 0; i < 3; i++) {
        if (kit_take(base, "job", 60000, 0, &hold, &err) != HF_OK)
            kit_die("take: %s", err.text);
        kit_sleep_ms(NOTICE_MS);
        if (kit_renew(base, &hold, &err) != HF_OK || kit_drop(base, &hold, &err) != HF_OK)
            kit_die("%s", err.text);
    }
    if (chdir("/") != 0 || rename("/store", "/elsewhere") != 0)
        kit_die("rename");
    kit_sleep_ms(NOTICE_MS);
    if (kit_take(base, "job", 60000, 0, &hold, &err) != HF_CORRUPT)
        kit_die("not noticed behind a chroot");
}

static void behind_a_chroot(void **state)
{
    struct place place = new_place();
    int status = kit_wait(kit_spawn(use_locked_in, &place));

    (void)state;
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        print_message("# skipped: not root\n");
        skip();
    }
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_noticed),
        cmocka_unit_test(a_keeper_hears_of_it),
        cmocka_unit_test(back_in_place),
        cmocka_unit_test(behind_a_chroot),
    };

    return KIT_RUN(tests);
}
