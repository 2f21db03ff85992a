/* test_words.c - what a lock's word decides, where it is mapped and where it is guarded: no system
 * call for a pair, a page that is stopped in, slots that move, details that others free.
 *
 * run: threads */
#include "../support/faultkit.h"
#include "stores/file/details.h"
#include "stores/file/slot.h"
#include "stores/file/word.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct hf_store_base *open_words(const char *dir, bool mapped)
{
    struct hf_store_base *base = NULL;
    struct hf_error err = {0};
    char url[600];

    (void)snprintf(url, sizeof url, "file:%s", dir);
    kit_expect(hf__file_open_on(mapped ? &kit_mapped_sys : &kit_sys, &kit_host, url, HF_NEVER,
                                &base, &err),
               HF_OK, &err);
    return base;
}

/* The word of a lock's slot, and where it is. */
static off_t find_word(struct hf_store_base *base, const char *name, struct hf__pair *out)
{
    struct file_store *store = hf__file_of(base);
    struct bucket bucket;
    struct view view;
    struct view *found;

    kit_expect(hf__page_lock(store, hf__name_hash(name), HF_NEVER, &bucket, NULL), HF_OK, NULL);
    kit_expect(hf__slot_see(store, &bucket, name, &view, &found, NULL), HF_OK, NULL);
    hf__page_unlock(store, &bucket);
    assert_non_null(found);
    *out = view.word;
    return view.at;
}

static void set_word(struct hf_store_base *base, off_t at, struct hf__pair from, struct hf__pair to)
{
    kit_expect(hf__word_swap(hf__file_of(base), at, from, to, NULL), HF_OK, NULL);
}

static off_t size_of(const char *dir)
{
    struct stat st;

    assert_int_equal(stat(kit_slots(dir), &st), 0);
    return st.st_size;
}

static void needs_no_system(void **state)
{
    struct hf_store_base *base = open_words(kit_fast_dir(), true);
    struct kit_hold hold;
    struct hf_error err = {0};

    (void)state;
    if (!hf__file_of(base)->mapped) {
        kit_close(base);
        skip();
    }
    (void)kit_pair(base, "job");
    kit_plan = (struct kit_plan){.ops = KIT_ALL};
    for (int i = 0; i < 100; i++) {
        kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
        kit_expect(kit_renew(base, &hold, &err), HF_OK, &err);
        kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    }
    assert_int_equal(kit_plan.seen, 0);
    kit_plan = (struct kit_plan){0};
    kit_close(base);
}

/* Guarded: the slot and the word are read, the details and two words written. */
static void needs_little_of_the_system(void **state)
{
    struct hf_store_base *base = open_words(kit_fast_dir(), false);

    (void)state;
    (void)kit_pair(base, "job");
    (void)kit_pair(base, "job");
    kit_plan = (struct kit_plan){.ops = KIT_ALL};
    for (int i = 0; i < 100; i++)
        (void)kit_pair(base, "job");
    assert_int_equal(kit_plan.seen, 500);
    kit_plan = (struct kit_plan){0};
    kit_close(base);
}

/* Another name of the same page. */
static const char *neighbour_of(const char *name)
{
    static char out[32];

    for (int i = 0;; i++) {
        (void)snprintf(out, sizeof out, "beside-%d", i);
        if (hf__name_hash(out) % ROOTS == hf__name_hash(name) % ROOTS)
            return out;
    }
}

/* Where a lock was met before, there may be another one now. */
static void what_was_met_may_be_gone(void **state)
{
    const char *dir = kit_fast_dir();
    struct hf_store_base *base = open_words(dir, false);
    struct hf_store_base *other = open_words(dir, false);
    const char *beside = neighbour_of("job");
    struct kit_hold holds[2];
    struct hf_error err = {0};
    struct hf__pair word;
    off_t at;

    (void)state;
    (void)kit_pair(base, "job");
    (void)kit_pair(base, "job");
    at = find_word(base, "job", &word);
    kit_expect(other->ops->forget(other, "job", HF_NEVER, &err), HF_OK, &err);
    (void)kit_pair(other, beside);
    assert_int_equal(find_word(other, beside, &word), at);
    kit_expect(kit_take(base, "job", 60000, 0, &holds[0], &err), HF_OK, &err);
    kit_expect(kit_take(other, beside, 60000, 0, &holds[1], &err), HF_OK, &err);
    assert_int_not_equal(find_word(base, "job", &word), at);
    kit_expect(kit_drop(other, &holds[1], &err), HF_OK, &err);
    kit_expect(kit_drop(base, &holds[0], &err), HF_OK, &err);
    kit_close(other);
    kit_close(base);
}

struct part {
    const char *dir;
    bool mapped;
};

static void sit_on_page(void *data)
{
    const struct part *part = data;
    struct hf_store_base *base = open_words(part->dir, part->mapped);
    struct bucket bucket;

    if (hf__page_lock(hf__file_of(base), hf__name_hash("job"), HF_NEVER, &bucket, NULL) != HF_OK)
        kit_die("lock");
    (void)raise(SIGSTOP);
}

/* Somebody is stopped with the page locked: what is free is taken, what is held goes on. */
static void goes_on_beside_a_stopped_one(void **state)
{
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        struct part part = {.dir = kit_fast_dir(), .mapped = mapped == 1};
        struct hf_store_base *base = open_words(part.dir, part.mapped);
        struct kit_hold hold;
        struct hf_error err = {0};
        pid_t pid;

        (void)kit_pair(base, "job");
        pid = kit_spawn(sit_on_page, &part);
        kit_wait_stopped(pid);
        for (int i = 0; i < 3; i++) {
            kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
            kit_expect(kit_renew(base, &hold, &err), HF_OK, &err);
            kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
        }
        (void)kill(pid, SIGKILL);
        (void)kit_wait(pid);
        kit_close(base);
    }
}

/* A process that died while a slot moved has changed nothing: whoever locks the page next mends it.
 * A moving lock is not taken, renewed or released without the page's lock. */
static void moving_is_mended(void **state)
{
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        struct hf_store_base *base = open_words(kit_fast_dir(), mapped == 1);
        struct kit_hold hold;
        struct hf_error err = {0};
        struct hf__pair word;
        off_t at;

        for (int what = 0; what < 3; what++) {
            if (what == 0)
                (void)kit_pair(base, "job");
            else
                kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
            at = find_word(base, "job", &word);
            set_word(base, at, word, hf__word_with(word, WORD_MOVING));
            if (what == 0)
                kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
            if (what == 1)
                kit_expect(kit_renew(base, &hold, &err), HF_OK, &err);
            kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
            (void)find_word(base, "job", &word);
            assert_int_equal(word.high, 0);
        }
        kit_close(base);
    }
}

/* A hold whose slot has moved, and whose old place belongs to another name: only a look by name may
 * say that it is lost. */
static void follows_what_moved(void **state)
{
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        const char *dir = kit_fast_dir();
        struct hf_store_base *base = open_words(dir, mapped == 1);
        struct hf_store_base *other = open_words(dir, mapped == 1);
        enum { HELD = 12, MORE = 3000 };
        struct kit_hold held[HELD];
        struct kit_hold hold;
        struct hf_error err = {0};
        char name[32];

        for (int i = 0; i < HELD; i++) {
            (void)snprintf(name, sizeof name, "held-%d", i);
            kit_expect(kit_take(base, name, 60000, 0, &held[i], &err), HF_OK, &err);
        }
        for (int i = 0; i < MORE; i++) {
            (void)snprintf(name, sizeof name, "more-%d", i);
            kit_expect(kit_take_detached(other, name, 60000, &hold, &err), HF_OK, &err);
        }
        for (int i = 0; i < HELD; i++) {
            kit_expect(kit_renew(base, &held[i], &err), HF_OK, &err);
            kit_expect(kit_take(other, held[i].name, 60000, 0, &hold, &err), HF_BUSY, &err);
            kit_expect(kit_drop(base, &held[i], &err), HF_OK, &err);
            kit_expect(kit_take(other, held[i].name, 60000, 0, &hold, &err), HF_OK, &err);
            kit_expect(kit_drop(base, &held[i], &err), HF_LOST, &err);
        }
        kit_close(other);
        kit_close(base);
    }
}

/* Which details the word of a held lock names. */
static uint32_t details_of(struct hf_store_base *base, const char *name)
{
    struct hf__pair word;

    (void)find_word(base, name, &word);
    return hf__word_details(word);
}

/* Fifteen of a client's own; the rest lie in the slots. Released by another process, they can be
 * had again. */
static void details_are_had_again(void **state)
{
    enum { MANY = DETAILS_PER_PAGE + 5 };

    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        const char *dir = kit_fast_dir();
        struct hf_store_base *base = open_words(dir, mapped == 1);
        struct hf_store_base *other = open_words(dir, mapped == 1);
        struct kit_hold holds[MANY];
        struct hf_error err = {0};
        char name[32];

        for (int i = 0; i < MANY; i++) {
            (void)snprintf(name, sizeof name, "lock-%d", i);
            kit_expect(kit_take(base, name, 60000, 0, &holds[i], &err), HF_OK, &err);
            assert_int_equal(details_of(base, name) != 0, i < DETAILS_PER_PAGE);
        }
        for (int i = 0; i < MANY; i++) {
            kit_expect(kit_renew(other, &holds[i], &err), HF_OK, &err);
            kit_expect(kit_drop(other, &holds[i], &err), HF_OK, &err);
        }
        kit_sleep_ms(1100); /* it looks once a second */
        kit_expect(kit_take(base, "lock-0", 60000, 0, &holds[0], &err), HF_OK, &err);
        assert_int_not_equal(details_of(base, "lock-0"), 0);
        /* A new ttl: the details of another client are not to be changed, and lie in the slot. */
        holds[0].ttl_ms = 30000;
        kit_expect(kit_renew(other, &holds[0], &err), HF_OK, &err);
        assert_int_equal(details_of(base, "lock-0"), 0);
        kit_expect(kit_renew(base, &holds[0], &err), HF_OK, &err);
        kit_expect(kit_drop(base, &holds[0], &err), HF_OK, &err);
        kit_close(other);
        kit_close(base);
    }
}

static void hold_and_die(void *data)
{
    const struct part *part = data;
    struct hf_store_base *base = open_words(part->dir, part->mapped);
    struct kit_hold hold;
    struct hf_error err = {0};

    if (kit_take(base, "job", 60000, 0, &hold, &err) != HF_OK ||
        kit_take(base, "another", 60000, 0, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    (void)raise(SIGKILL);
}

/* Clients that come and go, one way or the other, use the same page. Before a dead one's is used
 * again, nothing names it. */
static void pages_are_used_again(void **state)
{
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        struct part part = {.dir = kit_fast_dir(), .mapped = mapped == 1};
        struct hf_store_base *base = open_words(part.dir, part.mapped);
        struct hf__pair word;
        off_t size;

        (void)kit_pair(base, "job");
        (void)kit_pair(base, "another");
        kit_close(base);
        size = size_of(part.dir);
        for (int i = 0; i < 20; i++) {
            if (i % 2 == 0)
                (void)kit_wait(kit_spawn(hold_and_die, &part));
            base = open_words(part.dir, part.mapped);
            (void)kit_pair(base, "something else");
            if (i % 2 == 0) { /* the page was the dead one's */
                (void)find_word(base, "job", &word);
                assert_int_equal(word.high, 0);
                (void)find_word(base, "another", &word);
                assert_int_equal(word.high, 0);
            }
            kit_close(base);
        }
        assert_int_equal(size_of(part.dir), size);
    }
}

/* A clock that is beyond what a word has room for grants nothing, rather than what is over. */
static void the_end_of_time(void **state)
{
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};

    (void)state;
    kit_world.now_fake = true;
    kit_world.now_ns = (int64_t)EXPIRY_MAX_MS * HF__NS_PER_MS;
    base = kit_open(kit_fast_dir());
    kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_UNSUPPORTED, &err);
    kit_close(base);
    kit_world = (struct kit_world){0};
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_no_system),          cmocka_unit_test(needs_little_of_the_system),
        cmocka_unit_test(what_was_met_may_be_gone), cmocka_unit_test(goes_on_beside_a_stopped_one),
        cmocka_unit_test(moving_is_mended),         cmocka_unit_test(follows_what_moved),
        cmocka_unit_test(details_are_had_again),    cmocka_unit_test(pages_are_used_again),
        cmocka_unit_test(the_end_of_time),
    };

    return KIT_RUN(tests);
}
