/* list.c - names of every kind, and what a store tells about the locks it has. */
#include "conform.h"

#include <string.h>

/* Names that somebody's parser, path or key might stumble over. */
static const char *const odd[] = {
    " in front",
    "in the end ",
    "a b",
    "A B",
    "gr\xc3\xbc\xc3\x9f",
    "\xe2\x9c\x93\xf0\x9f\x94\x92",
    "/abs//x/../y",
    "../../etc/passwd",
    "a/b",
    "a%2Fb",
    "%41",
    "A",
    "a",
    "%",
    "100%",
    "%s%n%d",
    "{tag}rest",
    "{",
    "a{b",
    "-dash",
    "--",
    ".",
    "..",
    "'",
    "\"",
    "\\",
    "*?[a-z]",
    "a:b",
    "a;b",
    "a,b",
    "a=b",
    "#",
    "\xff\xfe raw bytes",
    "$(x) `y`",
    "<&>",
};

/* Takes it. A name that is not UTF-8 may be refused, because JSON cannot express it, for instance:
 * then it is "". */
static bool take_odd(struct hf_store_base *store, struct hold *hold)
{
    enum hf_status status = take(store, hold, LONG_TTL_MS, 0);

    if (status == HF_INVALID && strstr(hold->name, "\xff\xfe") != NULL) {
        hold->name[0] = '\0';
        return true;
    }
    return status == HF_OK;
}

/* All are held at once, so that two which the store takes for the same would be noticed. */
static void odd_names(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold holds[COUNT(odd) + 1];
    char salt[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(salt, "");
    for (size_t i = 0; i < COUNT(holds); i++) {
        memset(&holds[i], 0, sizeof holds[i]);
        if (i < COUNT(odd)) {
            (void)snprintf(holds[i].name, sizeof holds[i].name, i % 2 ? "%s%s" : "%2$s%1$s", odd[i],
                           salt + 1);
        } else { /* the longest there is */
            memset(holds[i].name, 'x', HF_NAME_MAX);
            memcpy(holds[i].name, salt + 1, strlen(salt + 1));
        }
        check_row(take_odd(store, &holds[i]), i);
    }
    for (size_t i = 0; i < COUNT(holds); i++) {
        struct hold other = hold_same(&holds[i]);

        if (holds[i].name[0] == '\0')
            continue;
        check_row(take(store, &other, LONG_TTL_MS, 0) == HF_BUSY, i);
        check_row(is_held(store, holds[i].name), i);
        check_row(release(store, &holds[i]) == HF_OK, i);
        check_row(!is_held(store, holds[i].name), i);
    }
    client_close(store);
}

struct listing {
    struct hold *holds;
    size_t count;
    unsigned seen[64];
    unsigned strangers;
    unsigned calls;
    unsigned stop_after;
};

/* A server in between may put the name that it knows us by in front. */
static bool is_our_label(const char *label)
{
    const char *ours = strstr(label, "host/1/conform");

    return ours != NULL && strcmp(ours, "host/1/conform") == 0;
}

static bool tick_off(const struct hf_lock_info *info, void *data)
{
    struct listing *listing = data;

    listing->calls++;
    for (size_t i = 0; i < listing->count; i++)
        if (strcmp(info->name, listing->holds[i].name) == 0) {
            bool good = info->held && info->token == listing->holds[i].grant.token &&
                        is_our_label(info->label) && info->remaining_ms > 0 &&
                        info->remaining_ms <= LONG_TTL_MS && info->age_ms < LONG_TTL_MS &&
                        !info->foreign && info->waiters == 0 && info->size >= sizeof *info;

            listing->seen[i] += good ? 1 : 100;
            return listing->calls != listing->stop_after;
        }
    listing->strangers++;
    return listing->calls != listing->stop_after;
}

static enum hf_status list(struct hf_store_base *store, const char *name, bool exact,
                           struct listing *listing)
{
    struct hf_query query = {
        .name = name, .exact = exact, .deadline_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS};
    struct hf_error err;

    listing->calls = 0;
    listing->strangers = 0;
    memset(listing->seen, 0, sizeof listing->seen);
    return store->ops->list(store, &query, tick_off, listing, &err);
}

/* Whether all of them are listed, each once, and nobody else. A listing of many may be a moment
 * old. */
static bool lists_all(struct hf_store_base *store, const char *prefix, struct listing *listing)
{
    if (list(store, prefix, false, listing) != HF_OK)
        return false;
    for (size_t i = 0; i < listing->count; i++)
        if (listing->seen[i] != 1)
            return false;
    return true;
}

static void lists_what_is_held(void **state)
{
    enum { LOCKS = 40 };
    struct hf_store_base *store = client_open();
    struct hold holds[LOCKS];
    struct listing listing = {.holds = holds, .count = LOCKS};
    char prefix[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(prefix, "list");
    for (int i = 0; i < LOCKS; i++) {
        memset(&holds[i], 0, sizeof holds[i]);
        (void)snprintf(holds[i].name, sizeof holds[i].name, "%.100s/%c/%d", prefix,
                       i < LOCKS / 2 ? 'a' : 'b', i);
        assert_int_equal(take(store, &holds[i], LONG_TTL_MS, 0), HF_OK);
    }
    check_soon(lists_all(store, prefix, &listing));
    assert_int_equal(listing.strangers, 0);
    /* Every lock of the store, of which ours are a part. */
    assert_true(lists_all(store, "", &listing));
    (void)snprintf(prefix + strlen(prefix), 4, "/b");
    assert_int_equal(list(store, prefix, false, &listing), HF_OK);
    assert_int_equal(listing.calls, LOCKS / 2);
    assert_int_equal(listing.seen[LOCKS - 1], 1);
    /* Exactly one, though its name is the beginning of others'. */
    assert_int_equal(list(store, holds[3].name, true, &listing), HF_OK);
    assert_int_equal(listing.calls, 1);
    assert_int_equal(listing.seen[3], 1);
    listing.stop_after = 5;
    assert_int_equal(list(store, "", false, &listing), HF_OK);
    assert_int_equal(listing.calls, 5);
    listing.stop_after = 0;
    for (int i = 0; i < LOCKS; i++)
        assert_int_equal(release(store, &holds[i]), HF_OK);
    check_soon(list(store, prefix, false, &listing) == HF_OK && listing.calls == 0);
    client_close(store);
}

static bool keep_times(const struct hf_lock_info *info, void *data)
{
    struct hf_lock_info *times = data;

    times->renewed_ms = info->renewed_ms;
    times->ttl_ms = info->ttl_ms;
    return true;
}

/* What is told of the last renewal is true, even of one that changed the ttl. A store may tell
 * nothing. */
static bool tells_renewal(struct hf_store_base *store, const struct hold *hold)
{
    struct hf_query query = {
        .name = hold->name, .exact = true, .deadline_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS};
    struct hf_lock_info times = {.size = sizeof times};
    int64_t before_ms = hf__wall_us() / 1000;
    int64_t ago_ms;

    assert_int_equal(store->ops->list(store, &query, keep_times, &times, NULL), HF_OK);
    ago_ms = before_ms - times.renewed_ms;
    return (times.renewed_ms == 0 || (ago_ms > -3000 && ago_ms < (int64_t)hold->ttl_ms / 3)) &&
           (times.ttl_ms == 0 || times.ttl_ms == hold->ttl_ms);
}

static void tells_the_last_renewal(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("renewal");

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    check_soon(tells_renewal(store, &hold));
    if ((conform.features & HF_FEATURE_RENEW_TTL) != 0) {
        assert_int_equal(renew(store, &hold, LONG_TTL_MS / 2), HF_OK);
        check_soon(tells_renewal(store, &hold));
        assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_OK);
        check_soon(tells_renewal(store, &hold));
    }
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

void add_list_tests(struct suite *suite)
{
    ADD(suite, odd_names);
    ADD(suite, lists_what_is_held);
    ADD(suite, tells_the_last_renewal);
}
