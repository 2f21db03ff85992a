/* test_client_once.c - what hf_once_* refuses, and what it answers when it is used in the wrong
 * order, over the embedded store. tests/conform/once.c has what it is for. */
#include "../support/check.h"

#include <holdfast/once.h>
#include <holdfast/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DAY_MS 86400000LL

static char dir[256];
static char url[300];
static struct hf_store *store;

static int set_up(void **state)
{
    (void)state;
    check_temp_dir(dir, sizeof dir);
    (void)snprintf(url, sizeof url, "file:%s/store", dir);
    return hf_open(url, &store, NULL) == HF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    hf_close(store);
    check_remove_dir(dir);
    return 0;
}

static struct hf_once *open_once(const char *key, struct hf_once_options options)
{
    struct hf_once *once;

    options.size = sizeof options;
    assert_int_equal(hf_once_open(store, key, &options, &once, NULL), HF_OK);
    return once;
}

static enum hf_status end_well(struct hf_once *once, struct hf_error *err)
{
    return hf_once_end(once, HF_ONCE_END_SUCCESS, 0, NULL, 0, err);
}

static void bad_options_are_refused_by_name(void **state)
{
    static const struct {
        struct hf_once_options options;
        const char *says;
    } rows[] = {
        {{.per_ms = 7000}, "per_ms: a period"},
        {{.per_ms = -1}, "per_ms"},
        {{.per_ms = 500}, "per_ms: a period"},
        {{.per_ms = DAY_MS + 1000}, "per_ms: a period"},
        {{.at = "03:00"}, "need per_ms"},
        {{.slack_ms = -1}, "need per_ms"},
        {{.start_by_ms = 1}, "need per_ms"},
        {{.per_ms = 3600000, .at = "03:00"}, "whole days"},
        {{.per_ms = DAY_MS, .at = "24:00"}, "not a time of day"},
        {{.per_ms = DAY_MS, .at = ""}, "not a time of day"},
        {{.per_ms = DAY_MS, .tz = "Mars/Olympus"}, "tz: there is no time zone \"Mars/Olympus\""},
        {{.per_ms = DAY_MS, .tz = "../../etc/passwd"},
         "tz: \"../../etc/passwd\" is not a time zone"},
        {{.per_ms = DAY_MS, .slack_ms = DAY_MS}, "slack_ms: at most half"},
        {{.per_ms = DAY_MS, .start_by_ms = HF_RECORD_KEEP_MAX_MS}, "start_by_ms: at most 50"},
        {{.per_ms = DAY_MS, .start_by_ms = -1}, "start_by_ms"},
        {{.per_ms = DAY_MS, .keep_ms = DAY_MS}, "keep_ms: a slot could run twice"},
        {{.keep_ms = HF_RECORD_KEEP_MAX_MS + 1}, "keep_ms: at most"},
        {{.keep_ms = -1}, "keep_ms"},
        {{.retry_after_ms = -1}, "retry_after_ms"},
        {{.ago_ms = -1}, "ago_ms"},
        {{.ago_ms = HF_RECORD_KEEP_MAX_MS + 1}, "ago_ms"},
        {{.ttl_ms = 1}, "ttl"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hf_once_options options = rows[i].options;
        struct hf_once *once = (struct hf_once *)1;
        struct hf_error err;

        options.size = sizeof options;
        check_row(hf_once_open(store, "key", &options, &once, &err) == HF_INVALID, i);
        check_row(once == NULL && err.code == HF_INVALID, i);
        check_row(strstr(err.text, rows[i].says) != NULL, i);
    }
}

static void bad_keys_and_stores_are_refused(void **state)
{
    struct hf_once_options no_size = {.size = 0};
    struct hf_store *readonly;
    struct hf_once *once;
    struct hf_error err;

    (void)state;
    assert_int_equal(hf_once_open(store, "", NULL, &once, &err), HF_INVALID);
    assert_int_equal(hf_once_open(store, NULL, NULL, &once, &err), HF_INVALID);
    assert_int_equal(hf_once_open(store, "a\n", NULL, &once, NULL), HF_INVALID);
    assert_int_equal(hf_once_open(store, "key", &no_size, &once, &err), HF_INVALID);
    assert_int_equal(hf_open_readonly(url, &readonly, NULL), HF_OK);
    assert_int_equal(hf_once_open(readonly, "key", NULL, &once, &err), HF_INVALID);
    assert_null(once);
    hf_close(readonly);
    hf_once_close(NULL);
}

/* A program built before the last options existed does not know them. */
static void options_of_an_older_header_are_enough(void **state)
{
    struct hf_once_options options = {
        .size = offsetof(struct hf_once_options, keep_ms), .per_ms = 3600000, .keep_ms = -1};
    struct hf_once *once;

    (void)state;
    assert_int_equal(hf_once_open(store, "old", &options, &once, NULL), HF_OK);
    assert_int_equal(hf_once_begin(once, NULL), HF_OK);
    hf_once_close(once);
}

static void calls_in_the_wrong_order_change_nothing(void **state)
{
    struct hf_once *once = open_once("order", (struct hf_once_options){0});
    struct hf_error err;

    (void)state;
    assert_string_equal(hf_once_slot(once), "");
    assert_null(hf_once_on_record(once));
    assert_int_equal(hf_once_outcome(once), HF_ONCE_OPEN);
    assert_int_equal(end_well(once, &err), HF_INVALID); /* not begun */
    assert_int_equal(hf_once_begin(once, &err), HF_OK);
    assert_int_equal(hf_once_begin(once, &err), HF_INVALID); /* under way */
    assert_int_equal(hf_once_outcome(once), HF_ONCE_RUN);
    assert_int_equal(hf_once_end(once, (enum hf_once_ending)0, 0, NULL, 0, &err), HF_INVALID);
    assert_int_equal(hf_once_end(once, (enum hf_once_ending)9, 0, NULL, 0, NULL), HF_INVALID);
    assert_non_null(hf_once_lease(once));
    assert_int_equal(end_well(once, &err), HF_OK);
    assert_string_equal(err.text, "");
    assert_int_equal(end_well(once, &err), HF_INVALID); /* twice */
    assert_int_equal(hf_once_outcome(once), HF_ONCE_DONE);
    hf_once_close(once);
}

static void of_a_long_output_the_end_is_kept(void **state)
{
    struct hf_once *once = open_once("output", (struct hf_once_options){0});
    size_t len = HF_ONCE_OUTPUT_MAX + 100;
    char *output = malloc(len);
    const struct hf_once_record *record;

    (void)state;
    assert_non_null(output);
    memset(output, 'x', len);
    output[len - 1] = 'y';
    output[len - HF_ONCE_OUTPUT_MAX] = 'a';
    assert_int_equal(hf_once_begin(once, NULL), HF_OK);
    assert_int_equal(hf_once_end(once, HF_ONCE_END_FAILURE, 300, output, len, NULL), HF_OK);
    free(output); /* the record is a copy */
    record = hf_once_on_record(once);
    assert_int_equal(record->output_len, HF_ONCE_OUTPUT_MAX);
    assert_int_equal(*(const char *)record->output, 'a');
    assert_string_equal((const char *)record->output + HF_ONCE_OUTPUT_MAX - 1, "y");
    assert_int_equal(record->code, 300);
    hf_once_close(once);
}

static void a_handle_outlives_its_store(void **state)
{
    struct hf_store *other;
    struct hf_once *idle, *busy, *done;
    struct hf_error err;

    (void)state;
    assert_int_equal(hf_open(url, &other, NULL), HF_OK);
    assert_int_equal(hf_once_open(other, "idle", NULL, &idle, NULL), HF_OK);
    assert_int_equal(hf_once_open(other, "busy", NULL, &busy, NULL), HF_OK);
    assert_int_equal(hf_once_open(other, "done", NULL, &done, NULL), HF_OK);
    assert_int_equal(hf_once_begin(busy, NULL), HF_OK);
    assert_int_equal(hf_once_begin(done, NULL), HF_OK);
    assert_int_equal(end_well(done, NULL), HF_OK);
    hf_close(other);
    assert_int_equal(hf_once_begin(done, NULL), HF_OK); /* settled: nobody is asked */
    assert_int_equal(hf_once_outcome(done), HF_ONCE_DONE);
    assert_int_equal(hf_once_begin(idle, &err), HF_INVALID);
    assert_non_null(strstr(err.text, "closed"));
    assert_true(hf_lease_remaining_ms(hf_once_lease(busy)) <= 0);
    assert_int_equal(end_well(busy, &err), HF_LOST);
    assert_int_equal(end_well(busy, &err), HF_INVALID);
    hf_once_close(idle);
    hf_once_close(busy);
    hf_once_close(done);
}

/* What a child finds out, as the bits of its exit code. */
static int look_from_child(struct hf_once *idle, struct hf_once *busy)
{
    struct hf_error err;
    int wrong = 0;

    wrong |= hf_once_begin(idle, &err) != HF_INVALID ? 1 : 0;
    wrong |= end_well(busy, &err) != HF_INVALID ? 2 : 0;
    wrong |= hf_lease_remaining_ms(hf_once_lease(busy)) != 0 ? 4 : 0;
    hf_close(store);
    hf_once_close(idle);
    hf_once_close(busy);
    return wrong;
}

static void a_forked_child_is_refused_and_may_only_free(void **state)
{
    struct hf_once *idle = open_once("idle", (struct hf_once_options){0});
    struct hf_once *busy = open_once("busy", (struct hf_once_options){0});
    int status;
    pid_t pid;

    (void)state;
    assert_int_equal(hf_once_begin(busy, NULL), HF_OK);
    pid = fork();
    if (pid == 0)
        _exit(look_from_child(idle, busy));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(hf_lease_remaining_ms(hf_once_lease(busy)) > 0);
    assert_int_equal(end_well(busy, NULL), HF_OK);
    hf_once_close(idle);
    hf_once_close(busy);
}

/* A caller that had to wait for the store means the slot of the moment before. */
static void the_slot_is_that_of_the_moment_it_was_asked_for(void **state)
{
    struct hf_once_options options = {.per_ms = DAY_MS, .slack_ms = -1, .start_by_ms = 9 * DAY_MS};
    struct hf_once *now = open_once("ago", options);
    struct hf_once *before, *late;
    struct hf_error err;

    (void)state;
    options.ago_ms = DAY_MS;
    before = open_once("ago", options);
    options.ago_ms = 3 * DAY_MS;
    options.start_by_ms = 0;
    late = open_once("ago", options);
    assert_int_equal(hf_once_begin(before, NULL), HF_OK);
    assert_int_equal(hf_once_outcome(before), HF_ONCE_RUN);
    assert_int_equal(end_well(before, NULL), HF_OK);
    assert_int_equal(hf_once_begin(now, NULL), HF_OK);
    assert_int_equal(hf_once_outcome(now), HF_ONCE_RUN);
    assert_true(strcmp(hf_once_slot(before), hf_once_slot(now)) < 0);
    assert_int_equal(end_well(now, NULL), HF_OK);
    assert_int_equal(hf_once_begin(late, NULL), HF_OK);
    assert_int_equal(hf_once_outcome(late), HF_ONCE_LATE);
    hf_once_close(now);
    hf_once_close(before);
    hf_once_close(late);
    /* And the wait is over. */
    now = open_once("line", (struct hf_once_options){0});
    before = open_once("line", (struct hf_once_options){.wait_ms = DAY_MS, .ago_ms = DAY_MS});
    assert_int_equal(hf_once_begin(now, NULL), HF_OK);
    assert_int_equal(hf_once_begin(before, &err), HF_BUSY);
    hf_once_close(now);
    hf_once_close(before);
}

/* Counted from the opening, all turns together; but after its own failure it waits for the next
 * attempt. */
static void the_wait_is_one_for_all_turns(void **state)
{
    struct hf_once *holder = open_once("wait", (struct hf_once_options){0});
    struct hf_once *waiter = open_once("wait", (struct hf_once_options){.wait_ms = 300});
    struct hf_error err;

    (void)state;
    assert_int_equal(hf_once_begin(holder, NULL), HF_OK);
    assert_int_equal(hf_once_begin(waiter, &err), HF_BUSY);
    check_pause_ms(300);
    assert_int_equal(hf_once_begin(waiter, &err), HF_BUSY);
    assert_int_equal(hf_once_end(holder, HF_ONCE_END_NOT_STARTED, 1, NULL, 0, NULL), HF_OK);
    assert_int_equal(hf_once_begin(waiter, &err), HF_OK);
    assert_int_equal(hf_once_outcome(waiter), HF_ONCE_RUN);
    hf_once_close(holder);
    hf_once_close(waiter);
}

static void the_sleep_before_the_next_attempt_can_be_cancelled(void **state)
{
    struct hf_once *once;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    once = open_once("nap", (struct hf_once_options){
                                .retries = 1, .retry_after_ms = DAY_MS, .cancel_fd = ends[0]});
    assert_int_equal(hf_once_begin(once, NULL), HF_OK);
    assert_int_equal(hf_once_end(once, HF_ONCE_END_FAILURE, 1, NULL, 0, NULL), HF_OK);
    assert_int_equal(write(ends[1], "x", 1), 1);
    (void)alarm(20); /* or it sleeps for a day */
    assert_int_equal(hf_once_begin(once, NULL), HF_CANCELLED);
    (void)alarm(0);
    assert_int_equal(hf_once_outcome(once), HF_ONCE_OPEN);
    hf_once_close(once);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* With a slack of half a second and slots of one, many a moment is near to its edge. */
static void a_slot_at_the_edge_of_its_slack_is_warned_about_once(void **state)
{
    int warned = 0;

    (void)state;
    for (int i = 0; i < 200 && warned == 0; i++) {
        struct hf_once *once =
            open_once("edge", (struct hf_once_options){.per_ms = 1000, .slack_ms = 500});
        struct hf_error err;

        assert_int_equal(hf_once_begin(once, &err), HF_OK);
        if (err.text[0] != '\0') {
            warned++;
            assert_int_equal(err.code, HF_OK);
            assert_non_null(strstr(err.text, "different slots"));
        }
        if (hf_once_outcome(once) == HF_ONCE_RUN) {
            assert_int_equal(end_well(once, &err), HF_OK);
            assert_string_equal(err.text, "");
        }
        hf_once_close(once);
        check_pause_ms(20);
    }
    assert_int_equal(warned, 1);
}

/* A record that makes no sense stops the work, and is not shown as one. */
static void a_damaged_record_is_told(void **state)
{
    struct hf_once *once = open_once("damaged", (struct hf_once_options){0});
    struct hf_lease *lease;
    struct hf_error err;

    (void)state;
    assert_int_equal(hf_acquire(store, "damaged", NULL, &lease, NULL), HF_OK);
    assert_int_equal(hf_record_put(lease, "once:ever", "what", 4, 0, NULL), HF_OK);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    assert_int_equal(hf_once_begin(once, &err), HF_CORRUPT);
    assert_null(hf_once_on_record(once));
    assert_int_equal(hf_once_outcome(once), HF_ONCE_OPEN);
    hf_once_close(once);
}

#define with_store(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(bad_options_are_refused_by_name),
        with_store(bad_keys_and_stores_are_refused),
        with_store(options_of_an_older_header_are_enough),
        with_store(calls_in_the_wrong_order_change_nothing),
        with_store(of_a_long_output_the_end_is_kept),
        with_store(a_handle_outlives_its_store),
        with_store(a_forked_child_is_refused_and_may_only_free),
        with_store(the_slot_is_that_of_the_moment_it_was_asked_for),
        with_store(the_wait_is_one_for_all_turns),
        with_store(the_sleep_before_the_next_attempt_can_be_cancelled),
        with_store(a_slot_at_the_edge_of_its_slack_is_warned_about_once),
        with_store(a_damaged_record_is_told),
    };

    return cmocka_run_group_tests_name("client_once", tests, NULL, NULL);
}
