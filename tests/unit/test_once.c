/* test_once.c - the records of `once`, and what each means for whoever comes next. */
#include "../support/check.h"
#include "core/once.h"

#include <string.h>

static const struct hf__once_rules plain = {.start_by_ms = 1000};

static struct hf__once_record sample(enum hf__once_state state)
{
    struct hf__once_record record = {
        .state = state,
        .settings = {.period_ms = 86400000, .at = "03:00", .zone = "Europe/Berlin"},
        .by = "web1/4711/report.sh",
        .token = UINT64_MAX / 2,
        .since_ms = 5000,
        .took_ms = 300,
        .exit_code = 0,
        .attempts = 2,
        .failures = 1,
        .note = "because"};

    return record;
}

static enum hf__once_next decide(const struct hf__once_record *record, bool holding, int64_t now_ms,
                                 const struct hf__once_rules *rules)
{
    const struct hf__once_case now = {
        .record = record, .holding = holding, .now_ms = now_ms, .slot_start_ms = 5000};
    int64_t until_ms;

    return hf__once_decide(&now, rules, &until_ms);
}

static void what_was_written_is_read(void **state)
{
    static char text[HF__ONCE_TEXT_MAX];
    struct hf__once_record in = sample(HF__ONCE_DONE), out;
    size_t len;

    (void)state;
    in.output = "one\n\0two\n";
    in.output_len = 9;
    len = hf__once_write(text, &in);
    assert_int_equal(hf__once_read(&out, text, len), HF__ONCE_READ);
    assert_int_equal(out.state, HF__ONCE_DONE);
    assert_true(hf__once_settings_equal(&out.settings, &in.settings));
    assert_string_equal(out.by, in.by);
    assert_string_equal(out.note, in.note);
    assert_true(out.token == in.token && out.since_ms == 5000 && out.took_ms == 300);
    assert_true(out.attempts == 2 && out.failures == 1);
    assert_int_equal(out.output_len, 9);
    assert_memory_equal(out.output, in.output, 9);
}

static void the_end_of_a_long_output_is_kept(void **state)
{
    static char text[HF__ONCE_TEXT_MAX], output[HF__ONCE_OUTPUT_MAX + 100];
    struct hf__once_record in = sample(HF__ONCE_FAILED), out;
    size_t len;

    (void)state;
    memset(output, 'a', 100);
    memset(output + 100, 'b', HF__ONCE_OUTPUT_MAX);
    memset(in.note, 'n', HF__ONCE_NOTE_MAX);
    memset(in.by, 'l', HF_LABEL_MAX);
    memset(in.settings.zone, 'z', HF__ONCE_ZONE_MAX);
    in.since_ms = in.took_ms = in.first_ms = INT64_MAX;
    in.token = in.exit_code = in.attempts = in.failures = UINT64_MAX;
    in.output = output;
    in.output_len = sizeof output;
    len = hf__once_write(text, &in);
    assert_true(len <= HF__ONCE_TEXT_MAX);
    assert_int_equal(hf__once_read(&out, text, len), HF__ONCE_READ);
    assert_int_equal(out.output_len, HF__ONCE_OUTPUT_MAX);
    assert_true(out.output[0] == 'b');
    assert_true(out.failures == UINT64_MAX && out.since_ms == INT64_MAX);
}

static void control_characters_do_not_forge_a_line(void **state)
{
    static char text[HF__ONCE_TEXT_MAX];
    struct hf__once_record in = sample(HF__ONCE_FAILED), out;
    size_t len;

    (void)state;
    strcpy(in.by, "x\nstate done\n");
    len = hf__once_write(text, &in);
    assert_int_equal(hf__once_read(&out, text, len), HF__ONCE_READ);
    assert_int_equal(out.state, HF__ONCE_FAILED);
    assert_string_equal(out.by, "x?state done?");
}

static void what_is_no_record_is_refused(void **state)
{
    static const struct {
        const char *text;
        enum hf__once_reading reading;

    } rows[] = {{"", HF__ONCE_NONSENSE},
                {"holdfast-once 1", HF__ONCE_NONSENSE},
                {"holdfast-once 1\n", HF__ONCE_NONSENSE},
                {"holdfast-once 1\n\n", HF__ONCE_NONSENSE},
                {"holdfast-once 1\nstate done\n", HF__ONCE_NONSENSE},
                {"holdfast-once 1\nstate done\n\n", HF__ONCE_READ},
                {"holdfast-once 1\nstate done\ncolour blue\n\n", HF__ONCE_READ},
                {"holdfast-once 1\nstate undone\n\n", HF__ONCE_NONSENSE},
                {"holdfast-once 1\nstate done\ntoken -1\n\n", HF__ONCE_NONSENSE},
                {"holdfast-once 1\nstate done\ntoken 18446744073709551616\n\n", HF__ONCE_NONSENSE},
                {"holdfast-once 1\nstate done\nsince 9223372036854775808\n\n", HF__ONCE_NONSENSE},
                {"holdfast-once 1\nstate done\nat 03:00:00.0\n\n", HF__ONCE_NONSENSE},
                {"holdfast-once 1\nstate done\nby a\tb\n\n", HF__ONCE_NONSENSE},
                {"holdfast-once 1\nstate\n\n", HF__ONCE_NONSENSE},
                {"holdfast-once 2\nanything\n", HF__ONCE_NEWER},
                {"{\"state\": \"done\"}\n", HF__ONCE_NONSENSE}};
    struct hf__once_record record;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(hf__once_read(&record, rows[i].text, strlen(rows[i].text)) == rows[i].reading, i);
    assert_int_equal(hf__once_read(&record, "holdfast-once 1\nstate done\0x\n\n", 30),
                     HF__ONCE_NONSENSE);
}

static void what_is_settled_needs_no_lock(void **state)
{
    static const struct {
        enum hf__once_state state;
        enum hf__once_next next;

    } rows[] = {{HF__ONCE_DONE, HF__ONCE_SAY_DONE}, {HF__ONCE_FAILED, HF__ONCE_SAY_FAILED},
                {HF__ONCE_HELD, HF__ONCE_SAY_HELD}, {HF__ONCE_TOO_LATE, HF__ONCE_SAY_LATE},
                {HF__ONCE_RUNNING, HF__ONCE_GO},    {HF__ONCE_CLEARED, HF__ONCE_GO}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hf__once_record record = sample(rows[i].state);

        check_row(decide(&record, false, 5500, &plain) == rows[i].next, i);
        check_row(decide(&record, true, 5500, &plain) == rows[i].next, i);
    }
    assert_int_equal(decide(NULL, false, 5500, &plain), HF__ONCE_GO);
    assert_int_equal(decide(NULL, true, 5500, &plain), HF__ONCE_GO);
}

static void it_can_be_too_late_to_start(void **state)
{
    struct hf__once_record running = sample(HF__ONCE_RUNNING);
    struct hf__once_record done = sample(HF__ONCE_DONE);
    struct hf__once_rules whenever = plain;

    (void)state;
    whenever.start_by_ms = INT64_MAX;
    assert_int_equal(decide(NULL, true, 6000, &plain), HF__ONCE_GO);
    assert_int_equal(decide(NULL, true, 6001, &plain), HF__ONCE_WRITE_LATE);
    assert_int_equal(decide(&running, true, 6001, &plain), HF__ONCE_WRITE_LATE);
    assert_int_equal(decide(NULL, false, 6001, &plain), HF__ONCE_GO); /* judged with the lock */
    assert_int_equal(decide(&done, true, 9000, &plain), HF__ONCE_SAY_DONE);
    assert_int_equal(decide(NULL, true, INT64_MAX, &whenever), HF__ONCE_GO);
}

static void a_crash_is_run_again_or_held(void **state)
{
    struct hf__once_record running = sample(HF__ONCE_RUNNING);
    struct hf__once_rules hold = plain;
    const struct hf__once_case ours = {.record = &running,
                                       .holding = true,
                                       .now_ms = 5500,
                                       .slot_start_ms = 5000,
                                       .not_started = true};
    int64_t until_ms;

    (void)state;
    hold.hold_crashed = true;
    assert_int_equal(decide(&running, true, 5500, &plain), HF__ONCE_GO);
    assert_int_equal(decide(&running, true, 5500, &hold), HF__ONCE_WRITE_HELD);
    assert_int_equal(decide(&running, true, 9999, &hold), HF__ONCE_WRITE_HELD);
    /* Without the lock nobody knows that it crashed. */
    assert_int_equal(decide(&running, false, 5500, &hold), HF__ONCE_GO);
    /* Whoever wrote it knows that it was not even started. */
    assert_int_equal(hf__once_decide(&ours, &hold, &until_ms), HF__ONCE_GO);
}

static void a_failure_is_retried_when_it_is_time(void **state)
{
    struct hf__once_record failed = sample(HF__ONCE_FAILED); /* ended at 5300, one failure */
    struct hf__once_rules rules = {.retries = 1, .retry_after_ms = 100, .start_by_ms = 1000};
    struct hf__once_case now = {
        .record = &failed, .holding = true, .now_ms = 5350, .slot_start_ms = 5000};
    int64_t until_ms;

    (void)state;
    assert_int_equal(hf__once_decide(&now, &rules, &until_ms), HF__ONCE_SLEEP);
    assert_int_equal(until_ms, 5400);
    now.now_ms = 5400;
    assert_int_equal(hf__once_decide(&now, &rules, &until_ms), HF__ONCE_GO);
    now.now_ms = 1000; /* the clock was set back */
    assert_int_equal(hf__once_decide(&now, &rules, &until_ms), HF__ONCE_SLEEP);
    assert_int_equal(until_ms, 1100);
    failed.failures = 2;
    assert_int_equal(hf__once_decide(&now, &rules, &until_ms), HF__ONCE_SAY_FAILED);
    now.came_after = true;
    now.now_ms = 5350;
    assert_int_equal(hf__once_decide(&now, &rules, &until_ms), HF__ONCE_GO);
    now.came_after = false;
    /* One that was never started, or told to end, is no failure of the job. */
    failed.failures = 0;
    now.now_ms = 5350;
    assert_int_equal(hf__once_decide(&now, &plain, &until_ms), HF__ONCE_GO);
    failed.failures = 1;
    failed.since_ms = failed.took_ms = INT64_MAX;
    assert_int_equal(hf__once_decide(&now, &rules, &until_ms), HF__ONCE_GO);
}

static void attempts_are_counted(void **state)
{
    struct hf__once_record before = sample(HF__ONCE_FAILED);
    struct hf__once_record record = hf__once_begun(NULL, &before.settings);

    (void)state;
    assert_true(record.state == HF__ONCE_RUNNING && record.attempts == 1 && record.failures == 0);
    record = hf__once_begun(&before, &before.settings);
    assert_true(record.attempts == 3 && record.failures == 1);
    before.state = HF__ONCE_CLEARED;
    record = hf__once_begun(&before, &before.settings);
    assert_true(record.attempts == 3 && record.failures == 0);
    before.attempts = UINT64_MAX;
    assert_true(hf__once_begun(&before, &before.settings).attempts == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_written_is_read),
                                       cmocka_unit_test(the_end_of_a_long_output_is_kept),
                                       cmocka_unit_test(control_characters_do_not_forge_a_line),
                                       cmocka_unit_test(what_is_no_record_is_refused),
                                       cmocka_unit_test(what_is_settled_needs_no_lock),
                                       cmocka_unit_test(it_can_be_too_late_to_start),
                                       cmocka_unit_test(a_crash_is_run_again_or_held),
                                       cmocka_unit_test(a_failure_is_retried_when_it_is_time),
                                       cmocka_unit_test(attempts_are_counted)};

    return cmocka_run_group_tests_name("once", tests, NULL, NULL);
}
