/* once.c - work that is to succeed once, through libholdfast: who is at it, what is on record, and
 * who takes over. Each handle has a store of its own, as on another machine. */
#include "conform.h"

#include <holdfast/once.h>
#include <holdfast/record.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct server {
    char label[16];
    struct hf_store *store;
    struct hf_once *once;
    struct hf_error err;
};

static struct hf_once_options once_for_ever(void)
{
    return (struct hf_once_options){.size = sizeof(struct hf_once_options)};
}

static struct server server_open(const char *label, const char *key, struct hf_once_options options)
{
    struct server server = {.once = NULL};

    (void)snprintf(server.label, sizeof server.label, "%s", label);
    options.label = server.label;
    assert_int_equal(hf_open(conform.url, &server.store, NULL), HF_OK);
    assert_int_equal(hf_once_open(server.store, key, &options, &server.once, &server.err), HF_OK);
    return server;
}

static void server_close(struct server *server)
{
    hf_once_close(server->once);
    hf_close(server->store);
}

/* A turn begins, and that is what comes of it. */
static bool begins(struct server *server, enum hf_once_outcome outcome)
{
    enum hf_status status = hf_once_begin(server->once, &server->err);

    if (status != HF_OK)
        print_error("# %s: %s\n", hf_status_name(status), server->err.text);
    return status == HF_OK && hf_once_outcome(server->once) == outcome;
}

static enum hf_status end_with(struct server *server, enum hf_once_ending ending)
{
    return hf_once_end(server->once, ending, 7, NULL, 0, &server->err);
}

static bool is_on_record(const struct server *server, const char *state, const char *by)
{
    const struct hf_once_record *record = hf_once_on_record(server->once);

    return record != NULL && strcmp(record->state, state) == 0 && strcmp(record->by, by) == 0;
}

static void a_store_without_records_says_so_of_once(void **state)
{
    struct hf_once *once = (struct hf_once *)1;
    struct hf_store *store;
    struct hf_error err;

    (void)state;
    assert_int_equal(hf_open(conform.url, &store, NULL), HF_OK);
    assert_int_equal(hf_once_open(store, "once", NULL, &once, &err), HF_UNSUPPORTED);
    assert_null(once);
    assert_non_null(strstr(err.text, "records"));
    hf_close(store);
}

static void what_succeeded_is_not_done_again(void **state)
{
    struct server one, other;
    const struct hf_once_record *record;
    char key[HF_NAME_MAX + 1];
    uint64_t token;

    (void)state;
    fresh_name(key, "once");
    one = server_open("one", key, once_for_ever());
    other = server_open("other", key, once_for_ever());
    assert_true(begins(&one, HF_ONCE_RUN));
    token = hf_lease_token(hf_once_lease(one.once));
    assert_true(is_on_record(&one, "running", "one"));
    assert_string_equal(hf_once_slot(one.once), "ever");
    assert_int_equal(hf_once_begin(other.once, &other.err), HF_BUSY);
    assert_true(is_on_record(&other, "running", "one"));
    assert_null(hf_once_lease(other.once));
    assert_int_equal(hf_once_end(one.once, HF_ONCE_END_SUCCESS, 3, "a\0b", 3, &one.err), HF_OK);
    assert_int_equal(hf_once_outcome(one.once), HF_ONCE_DONE);
    assert_null(hf_once_lease(one.once));
    assert_true(begins(&other, HF_ONCE_DONE));
    assert_true(is_on_record(&other, "done", "one"));
    record = hf_once_on_record(other.once);
    assert_true(record->token == token && record->code == 0 && record->attempts == 1 &&
                record->failures == 0 && record->since_ms > 0 && record->took_ms >= 0);
    assert_int_equal(record->output_len, 3);
    assert_memory_equal(record->output, "a\0b", 4);
    assert_non_null(strstr(hf_once_text(other.once), ": done by one, began "));
    server_close(&one);
    server_close(&other);
}

static void a_failure_is_mended_by_another_until_the_retries_are_used_up(void **state)
{
    struct hf_once_options options = once_for_ever();
    struct server one, other, later;
    char key[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(key, "fail");
    options.retries = 1;
    one = server_open("one", key, options);
    other = server_open("other", key, options);
    assert_true(begins(&one, HF_ONCE_RUN));
    assert_int_equal(end_with(&one, HF_ONCE_END_FAILURE), HF_OK);
    assert_int_equal(hf_once_outcome(one.once), HF_ONCE_OPEN);
    /* Whoever comes in between finds one attempt left. */
    later = server_open("later", key, options);
    assert_true(begins(&other, HF_ONCE_RUN));
    assert_int_equal(end_with(&other, HF_ONCE_END_FAILURE), HF_OK);
    assert_int_equal(hf_once_outcome(other.once), HF_ONCE_FAILED);
    assert_true(is_on_record(&other, "failed", "other"));
    assert_int_equal(hf_once_on_record(other.once)->code, 7);
    assert_int_equal(hf_once_on_record(other.once)->failures, 2);
    assert_true(begins(&one, HF_ONCE_FAILED));
    /* It was there when this one looked first: nobody tries to mend it any more. */
    assert_true(begins(&later, HF_ONCE_RUN));
    assert_int_equal(end_with(&later, HF_ONCE_END_SUCCESS), HF_OK);
    assert_int_equal(hf_once_on_record(later.once)->attempts, 3);
    server_close(&one);
    server_close(&other);
    server_close(&later);
}

static void the_next_attempt_is_slept_for_outside_the_lock(void **state)
{
    struct hf_once_options options = once_for_ever();
    struct hf_store_base *base = client_open();
    struct server one, other;
    char key[HF_NAME_MAX + 1];
    int64_t before_ns;

    (void)state;
    fresh_name(key, "later");
    options.retries = 2;
    options.retry_after_ms = 2500; /* the clock of etcd ticks in seconds */
    one = server_open("one", key, options);
    other = server_open("other", key, options);
    assert_true(begins(&one, HF_ONCE_RUN));
    assert_int_equal(end_with(&one, HF_ONCE_END_FAILURE), HF_OK);
    before_ns = hf__now_ns();
    assert_int_equal(hf_once_begin(other.once, &other.err), HF_BUSY);
    assert_non_null(strstr(other.err.text, "due in"));
    assert_true(is_on_record(&other, "failed", "one"));
    assert_false(is_held(base, key));
    client_close(base);
    assert_true(begins(&one, HF_ONCE_RUN)); /* its own, also without a wait */
    assert_true(hf__now_ns() - before_ns >= 1000 * HF__NS_PER_MS);
    assert_int_equal(end_with(&one, HF_ONCE_END_SUCCESS), HF_OK);
    server_close(&one);
    server_close(&other);
}

struct waiting {
    struct server server;
    pthread_t thread;
    bool ran;
};

static void *wait_in_line(void *data)
{
    struct waiting *waiting = data;

    waiting->ran = begins(&waiting->server, HF_ONCE_RUN);
    return NULL;
}

static void wait_behind(struct waiting *waiting, const char *key, struct hf_once_options options)
{
    struct hf_store_base *store = client_open();

    options.wait_ms = -1;
    waiting->server = server_open("waiter", key, options);
    assert_int_equal(pthread_create(&waiting->thread, NULL, wait_in_line, waiting), 0);
    await_line(store, key, 1);
    client_close(store);
}

static void who_waits_in_line_takes_over_what_was_given_up(void **state)
{
    struct waiting waiting = {.ran = false};
    struct server one;
    char key[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(key, "takeover");
    one = server_open("one", key, once_for_ever());
    assert_true(begins(&one, HF_ONCE_RUN));
    wait_behind(&waiting, key, once_for_ever());
    server_close(&one); /* in the middle of its turn */
    assert_int_equal(pthread_join(waiting.thread, NULL), 0);
    assert_true(waiting.ran);
    assert_int_equal(hf_once_on_record(waiting.server.once)->attempts, 2);
    assert_int_equal(end_with(&waiting.server, HF_ONCE_END_SUCCESS), HF_OK);
    server_close(&waiting.server);
}

static void what_was_given_up_is_held_if_that_is_asked_for(void **state)
{
    struct hf_once_options options = once_for_ever();
    struct server one, other;
    char key[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(key, "held");
    options.hold_crashed = true;
    one = server_open("one", key, options);
    assert_true(begins(&one, HF_ONCE_RUN));
    server_close(&one);
    for (int i = 0; i < 2; i++) { /* who finds it, and who comes later */
        other = server_open("other", key, options);
        assert_true(begins(&other, HF_ONCE_HELD));
        assert_true(is_on_record(&other, "held", "one"));
        server_close(&other);
    }
}

static void an_ending_that_says_nothing_about_the_work_is_no_failure(void **state)
{
    static const struct {
        enum hf_once_ending ending;
        bool hold;
        enum hf_once_outcome outcome;
        const char *state;
        enum hf_once_outcome next;
    } rows[] = {
        {HF_ONCE_END_CUT_OFF, false, HF_ONCE_FAILED, "failed", HF_ONCE_RUN},
        {HF_ONCE_END_CUT_OFF, true, HF_ONCE_HELD, "held", HF_ONCE_HELD},
        {HF_ONCE_END_NOT_STARTED, false, HF_ONCE_FAILED, "failed", HF_ONCE_RUN},
        {HF_ONCE_END_NOT_STARTED, true, HF_ONCE_FAILED, "failed", HF_ONCE_RUN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hf_once_options options = once_for_ever();
        struct server one, other;
        char key[HF_NAME_MAX + 1];

        options.hold_crashed = rows[i].hold;
        fresh_name(key, "cut");
        one = server_open("one", key, options);
        other = server_open("other", key, options);
        check_row(begins(&one, HF_ONCE_RUN), i);
        check_row(end_with(&one, rows[i].ending) == HF_OK, i);
        check_row(hf_once_outcome(one.once) == rows[i].outcome, i);
        check_row(is_on_record(&one, rows[i].state, "one"), i);
        check_row(hf_once_on_record(one.once)->failures == 0, i);
        check_row(begins(&one, rows[i].outcome), i); /* not by itself once more */
        check_row(begins(&other, rows[i].next), i);
        server_close(&one);
        server_close(&other);
    }
}

static void everybody_has_the_settings_on_record(void **state)
{
    struct hf_once_options options = once_for_ever();
    struct server one, other;
    char key[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(key, "settings");
    options.per_ms = 86400000;
    options.at = "03:00";
    options.slack_ms = -1;
    one = server_open("one", key, options);
    assert_true(begins(&one, HF_ONCE_RUN));
    assert_int_equal(strlen(hf_once_slot(one.once)), strlen("2026-11-17"));
    assert_int_equal(end_with(&one, HF_ONCE_END_SUCCESS), HF_OK);
    options.at = "04:00";
    other = server_open("other", key, options);
    assert_int_equal(hf_once_begin(other.once, &other.err), HF_INVALID);
    assert_non_null(strstr(other.err.text, "03:00"));
    assert_non_null(strstr(other.err.text, "04:00"));
    assert_null(hf_once_on_record(other.once));
    server_close(&one);
    server_close(&other);
}

/* Whatever the time is, a slot began more than a millisecond ago. */
static void what_is_too_late_is_put_on_record_as_such(void **state)
{
    struct hf_once_options options = once_for_ever();
    struct server one, other;
    char key[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(key, "late");
    options.per_ms = 7 * 86400000LL;
    options.slack_ms = -1;
    options.start_by_ms = 1;
    one = server_open("one", key, options);
    assert_true(begins(&one, HF_ONCE_LATE));
    assert_true(is_on_record(&one, "too-late", "one"));
    options.start_by_ms = 0;
    other = server_open("other", key, options);
    assert_true(begins(&other, HF_ONCE_LATE));
    server_close(&one);
    server_close(&other);
}

static void a_wait_in_line_can_be_cancelled(void **state)
{
    struct hf_once_options options = once_for_ever();
    struct server one, other;
    char key[HF_NAME_MAX + 1];
    int ends[2];

    (void)state;
    fresh_name(key, "cancel");
    assert_int_equal(pipe(ends), 0);
    one = server_open("one", key, options);
    assert_true(begins(&one, HF_ONCE_RUN));
    options.wait_ms = -1;
    options.cancel_fd = ends[0];
    other = server_open("other", key, options);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(hf_once_begin(other.once, &other.err), HF_CANCELLED);
    assert_int_equal(hf_once_outcome(other.once), HF_ONCE_OPEN);
    assert_int_equal(end_with(&one, HF_ONCE_END_SUCCESS), HF_OK);
    assert_true(begins(&other, HF_ONCE_DONE)); /* it may be asked again */
    server_close(&one);
    server_close(&other);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* heard: by the one that lost it, before it says how the work ended. */
static void lose_and_fail(const char *stem, bool heard)
{
    struct hf_break_options now = {.size = sizeof now, .now = true};
    struct server one, other;
    char key[HF_NAME_MAX + 1];

    fresh_name(key, stem);
    one = server_open("one", key, once_for_ever());
    other = server_open("other", key, once_for_ever());
    assert_true(begins(&one, HF_ONCE_RUN));
    assert_int_equal(
        hf_break(other.store, key, hf_lease_token(hf_once_lease(one.once)), &now, NULL, &other.err),
        HF_OK);
    assert_true(begins(&other, HF_ONCE_RUN));
    if (heard)
        assert_int_equal(hf_renew(hf_once_lease(one.once), 0, &one.err), HF_LOST);
    assert_int_equal(end_with(&one, HF_ONCE_END_FAILURE), HF_LOST);
    assert_int_equal(hf_once_outcome(one.once), HF_ONCE_OPEN);
    assert_int_equal(end_with(&other, HF_ONCE_END_SUCCESS), HF_OK);
    assert_true(begins(&one, HF_ONCE_DONE));
    assert_true(is_on_record(&one, "done", "other"));
    server_close(&one);
    server_close(&other);
}

static void who_lost_the_lock_writes_nothing(void **state)
{
    (void)state;
    lose_and_fail("lost", false);
    lose_and_fail("lost and heard of", true);
}

static void who_lost_the_lock_is_told_that_the_success_is_not_on_record(void **state)
{
    struct hf_break_options now = {.size = sizeof now, .now = true};
    struct server one, other;
    char key[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(key, "unrecorded");
    one = server_open("one", key, once_for_ever());
    other = server_open("other", key, once_for_ever());
    assert_true(begins(&one, HF_ONCE_RUN));
    assert_int_equal(
        hf_break(other.store, key, hf_lease_token(hf_once_lease(one.once)), &now, NULL, &other.err),
        HF_OK);
    assert_int_equal(end_with(&one, HF_ONCE_END_SUCCESS), HF_LOST);
    assert_true(begins(&one, HF_ONCE_DONE)); /* not by the one that knows better */
    assert_true(begins(&other, HF_ONCE_RUN));
    assert_true(hf_once_on_record(other.once)->attempts == 2);
    server_close(&one);
    server_close(&other);
}

/* A broken hold is still there to say what became of the work. */
static void what_fails_under_a_broken_lock_was_cut_off(void **state)
{
    struct hf_break_options options = {.size = sizeof options, .reason = "enough"};
    struct hf_error err;
    struct server one;
    char key[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(key, "broken");
    one = server_open("one", key, once_for_ever());
    assert_true(begins(&one, HF_ONCE_RUN));
    assert_int_equal(
        hf_break(one.store, key, hf_lease_token(hf_once_lease(one.once)), &options, NULL, &err),
        HF_OK);
    assert_int_equal(hf_renew(hf_once_lease(one.once), 0, &err), HF_LOST);
    assert_int_equal(end_with(&one, HF_ONCE_END_FAILURE), HF_OK);
    assert_int_equal(hf_once_outcome(one.once), HF_ONCE_FAILED);
    assert_int_equal(hf_once_on_record(one.once)->failures, 0);
    server_close(&one);
}

void add_once_tests(struct suite *suite)
{
    if (!has(HF_FEATURE_RECORDS)) {
        ADD(suite, a_store_without_records_says_so_of_once);
        return;
    }
    ADD(suite, what_succeeded_is_not_done_again);
    ADD(suite, a_failure_is_mended_by_another_until_the_retries_are_used_up);
    ADD(suite, the_next_attempt_is_slept_for_outside_the_lock);
    ADD(suite, who_waits_in_line_takes_over_what_was_given_up);
    ADD(suite, what_was_given_up_is_held_if_that_is_asked_for);
    ADD(suite, an_ending_that_says_nothing_about_the_work_is_no_failure);
    ADD(suite, everybody_has_the_settings_on_record);
    ADD(suite, what_is_too_late_is_put_on_record_as_such);
    ADD(suite, a_wait_in_line_can_be_cancelled);
    if (!has(HF_FEATURE_BREAK))
        return;
    ADD(suite, who_lost_the_lock_writes_nothing);
    ADD(suite, who_lost_the_lock_is_told_that_the_success_is_not_on_record);
    ADD(suite, what_fails_under_a_broken_lock_was_cut_off);
}
