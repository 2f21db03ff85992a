/* records_list.c - keys of every kind, many of them, and the lock that they belong to. */
#include "records.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Keys that somebody's pattern, path or encoding might stumble over. */
static const char *const odd[] = {
    "a",        "A",
    "a:1",      "a:2",
    "a:",       "a*",
    "a?",       "a_1",
    "ab1",      "a%",
    "100%",     "100x",
    "%61",      "[a]",
    "a/b",      "/",
    "..",       ".",
    "../../x",  " ",
    "a b ",     "'",
    "\"",       "\\",
    "\\x41",    "{tag}",
    "$(x)",     "gr\xc3\xbc\xc3\x9f",
    "\xff\xfe", "once:2026-11-17",
    "leader",   "0123456789012345678901234567890123456789012345678901234567890123",
};

struct listing {
    unsigned calls, stop_after, seen[COUNT(odd)], strangers;
};

static bool tick_off(const struct hf_record *record, void *data)
{
    struct listing *listing = data;

    listing->calls++;
    for (size_t i = 0; i < COUNT(odd); i++)
        if (strcmp(record->key, odd[i]) == 0) {
            bool good = record->value_len == strlen(odd[i]) && strcmp(record->value, odd[i]) == 0 &&
                        record->token != 0 && record->number == i + 1 && record->until_ms == 0 &&
                        record->size >= sizeof *record;

            listing->seen[i] += good ? 1 : 100;
            return listing->calls != listing->stop_after;
        }
    listing->strangers++;
    return listing->calls != listing->stop_after;
}

static enum hf_status list(struct hf_store_base *store, const char *name, const char *prefix,
                           hf_record_fn *fn, void *data)
{
    struct hf_record_query query = {
        .name = name, .key = prefix, .deadline_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS};
    struct hf_error err;
    enum hf_status status = store->ops->record_list(store, &query, fn, data, &err);

    if (status != HF_OK)
        print_error("# record_list: %s\n", err.text);
    return status;
}

/* All there at once, so that two which the store takes for the same would be noticed. */
static void lists_keys_of_every_kind(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("keys");
    struct hold longer = {0};
    static const char *const prefixes[] = {"",  "a", "a:", "a_", "a%",   "100%",   "a*",
                                           "[", "%", ".",  "\\", "\xff", "no such"};

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    for (size_t i = 0; i < COUNT(odd); i++)
        check_row(put_for(store, &hold, odd[i], (struct put){.number = i + 1, .value = odd[i]}) ==
                      HF_OK,
                  i);
    for (size_t i = 0; i < COUNT(odd); i++)
        check_row(reads(store, hold.name, odd[i], odd[i]), i);
    /* A lock whose name starts like this one's has records of its own. */
    (void)snprintf(longer.name, sizeof longer.name, "%.100s:a", hold.name);
    assert_int_equal(take(store, &longer, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(put_for(store, &longer, "a", (struct put){.number = 1, .value = "its"}),
                     HF_OK);
    for (size_t p = 0; p < COUNT(prefixes); p++) {
        struct listing listing = {.strangers = 0};

        assert_int_equal(list(store, hold.name, prefixes[p], tick_off, &listing), HF_OK);
        check_row(listing.strangers == 0, p);
        for (size_t i = 0; i < COUNT(odd); i++) {
            unsigned want = strncmp(odd[i], prefixes[p], strlen(prefixes[p])) == 0;

            if (listing.seen[i] != want)
                print_error("# prefix %s, key %s: %u\n", prefixes[p], odd[i], listing.seen[i]);
            check_row(listing.seen[i] == want, p);
        }
    }
    assert_int_equal(release(store, &longer), HF_OK);
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

static void a_listing_stops_when_told(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("stop");
    struct listing listing = {.stop_after = 2};

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(list(store, hold.name, "", tick_off, &listing), HF_OK);
    assert_int_equal(listing.calls, 0);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(
            put_for(store, &hold, odd[i], (struct put){.number = i + 1, .value = odd[i]}), HF_OK);
    assert_int_equal(list(store, hold.name, "", tick_off, &listing), HF_OK);
    assert_int_equal(listing.calls, 2);
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

static bool count(const struct hf_lock_info *info, void *data)
{
    (void)info;
    (*(unsigned *)data)++;
    return true;
}

/* How many locks with that prefix the store tells of. */
static unsigned locks_like(struct hf_store_base *store, const char *prefix)
{
    struct hf_query query = {.name = prefix, .deadline_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS};
    unsigned locks = 0;
    struct hf_error err;

    assert_int_equal(store->ops->list(store, &query, count, &locks, &err), HF_OK);
    return locks;
}

/* What lies beside a lock is not in its queue: it is taken, waited for and listed as ever. */
static void records_do_not_disturb_the_lock(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("aside");
    struct hold other = hold_same(&hold);

    (void)state;
    for (uint64_t round = 1; round <= 3; round++) {
        assert_int_equal(take(store, &hold, LONG_TTL_MS, SOON_MS), HF_OK);
        assert_int_equal(put_for(store, &hold, "a", (struct put){.number = 1, .value = "x"}),
                         HF_OK);
        assert_int_equal(put_for(store, &hold, "b", (struct put){.number = 2, .value = "x"}),
                         HF_OK);
        assert_int_equal(locks_like(store, hold.name), 1);
        assert_true(waiters_of(store, hold.name) == 0);
        assert_int_equal(take(store, &other, LONG_TTL_MS, 0), HF_BUSY);
        assert_int_equal(renew(store, &hold, 0), HF_OK);
        assert_int_equal(release(store, &hold), HF_OK);
        assert_false(is_held(store, hold.name));
        assert_int_equal(locks_like(store, hold.name), 0);
    }
    client_close(store);
}

/* One who waits, in a process of its own, is given the lock by a holder that left records. */
static void a_waiter_is_served_past_records(void **state)
{
    int ends[2];
    int status;
    pid_t pid;
    struct hf_store_base *store;
    struct hold hold = hold_new("served");
    char answer = '?';

    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid = fork_child();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct hf_store_base *own;
        struct hold wanted = hold_same(&hold);

        if (read(ends[0], &answer, 1) != 1 || (own = client_try_open()) == NULL ||
            take(own, &wanted, LONG_TTL_MS, 6 * SOON_MS) != HF_OK)
            _exit(1);
        _exit(reads(own, hold.name, "k", "left") && release(own, &wanted) == HF_OK ? 0 : 2);
    }
    store = client_open();
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(put_for(store, &hold, "j", (struct put){.number = 1, .value = "x"}), HF_OK);
    assert_int_equal(write(ends[1], "g", 1), 1);
    await_line(store, hold.name, 1);
    assert_int_equal(put_for(store, &hold, "k", (struct put){.number = 2, .value = "left"}), HF_OK);
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
    client_close(store);
}

struct tally {
    unsigned char seen[10000];
    unsigned count, wrong;
};

static bool tally_up(const struct hf_record *record, void *data)
{
    struct tally *tally = data;
    unsigned long at = strtoul(record->key + 4, NULL, 10);

    tally->count++;
    if (at >= sizeof tally->seen || tally->seen[at]++ != 0)
        tally->wrong++;
    return true;
}

/* CONFORM_KEYS: how many; the long tests ask for 10,000. */
static void many_keys(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("many");
    struct tally *tally = calloc(1, sizeof *tally);
    const char *asked = getenv("CONFORM_KEYS");
    unsigned keys = asked != NULL ? (unsigned)strtoul(asked, NULL, 10) : 300;
    char key[16];

    (void)state;
    assert_non_null(tally);
    assert_true(keys <= sizeof tally->seen);
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    for (unsigned i = 0; i < keys; i++) {
        if (i % 100 == 0)
            assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_OK);
        (void)snprintf(key, sizeof key, "key:%u", i);
        assert_int_equal(put_for(store, &hold, key, (struct put){.number = i + 1, .value = key}),
                         HF_OK);
    }
    assert_int_equal(list(store, hold.name, "key:", tally_up, tally), HF_OK);
    assert_int_equal(tally->count, keys);
    assert_int_equal(tally->wrong, 0);
    assert_true(reads(store, hold.name, "key:7", "key:7"));
    (void)snprintf(key, sizeof key, "key:%u", keys - 1);
    assert_true(reads(store, hold.name, key, key));
    free(tally);
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

void add_record_list_tests(struct suite *suite)
{
    ADD(suite, lists_keys_of_every_kind);
    ADD(suite, a_listing_stops_when_told);
    ADD(suite, records_do_not_disturb_the_lock);
    ADD(suite, a_waiter_is_served_past_records);
    ADD(suite, many_keys);
}
