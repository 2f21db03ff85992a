/* test_outbox.c - what the relay of an outbox decides. */
#include "../support/check.h"
#include "core/outbox.h"

#include <string.h>

static void answers_over_http(void **state)
{
    static const struct {
        long code;
        enum hf__outbox_verdict verdict;
    } rows[] = {{200, HF__OUTBOX_DELIVERED}, {204, HF__OUTBOX_DELIVERED},
                {299, HF__OUTBOX_DELIVERED}, {412, HF__OUTBOX_STALE},
                {199, HF__OUTBOX_RETRY},     {300, HF__OUTBOX_RETRY},
                {301, HF__OUTBOX_RETRY},     {400, HF__OUTBOX_RETRY},
                {404, HF__OUTBOX_RETRY}, /* a deployment may be under way */
                {409, HF__OUTBOX_RETRY},     {422, HF__OUTBOX_RETRY},
                {500, HF__OUTBOX_RETRY},     {0, HF__OUTBOX_RETRY}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(hf__outbox_http_verdict(rows[i].code), rows[i].verdict);
}

static void pauses_double_up_to_five_minutes(void **state)
{
    int64_t most_ms = 1000;

    (void)state;
    for (unsigned attempts = 0; attempts < 30; attempts++) {
        struct hf__outbox_mark longest = hf__outbox_failed(attempts, 100, -1, 0);
        struct hf__outbox_mark shortest = hf__outbox_failed(attempts, 100, -1, UINT32_MAX);

        assert_int_equal(longest.attempts, attempts + 1);
        assert_int_equal(longest.delay_ms, most_ms);
        assert_in_range((uint64_t)shortest.delay_ms, (uint64_t)most_ms / 2,
                        (uint64_t)most_ms / 2 + 1);
        most_ms = 2 * most_ms < 300000 ? 2 * most_ms : 300000;
    }
}

static void a_receiver_may_ask_for_a_pause(void **state)
{
    (void)state;
    assert_int_equal(hf__outbox_failed(7, 20, 0, 5).delay_ms, 0);
    assert_int_equal(hf__outbox_failed(7, 20, 2500, 5).delay_ms, 2500);
    assert_int_equal(hf__outbox_failed(7, 20, INT64_MAX, 5).delay_ms, HF__OUTBOX_ASKED_MAX_MS);
}

static void the_last_attempt_is_the_end(void **state)
{
    (void)state;
    assert_true(hf__outbox_failed(18, 20, -1, 0).delay_ms > 0);
    assert_int_equal(hf__outbox_failed(19, 20, -1, 0).delay_ms, -1);
    assert_int_equal(hf__outbox_failed(19, 20, 5000, 0).delay_ms, -1);
    assert_int_equal(hf__outbox_failed(0, 1, -1, 0).delay_ms, -1);
    /* A relay that allows fewer than an earlier one. */
    assert_int_equal(hf__outbox_failed(50, 20, -1, 0).delay_ms, -1);
    assert_int_equal(hf__outbox_failed(UINT32_MAX, 20, -1, 0).attempts, UINT32_MAX);
}

#define UID "0123abcd-4567-89ef-0123-456789abcdef"

static void lines_of_a_command(void **state)
{
    static const struct {
        const char *line;
        enum hf__outbox_word word;
        int64_t asked_ms;
    } rows[] = {{"ok " UID, HF__OUTBOX_SAID_OK, -1},
                {"ok 0123456789abcdef0123456789abcdef", HF__OUTBOX_SAID_OK, -1},
                {"retry " UID, HF__OUTBOX_SAID_RETRY, -1},
                {"retry " UID " 1.5s", HF__OUTBOX_SAID_RETRY, 1500},
                {"retry " UID " 0", HF__OUTBOX_SAID_RETRY, 0},
                {"retry " UID " soon", HF__OUTBOX_SAID_NOTHING, -1},
                {"retry " UID " -1s", HF__OUTBOX_SAID_NOTHING, -1},
                {"ok " UID " 1s", HF__OUTBOX_SAID_NOTHING, -1},
                {"ok " UID "0", HF__OUTBOX_SAID_NOTHING, -1},
                {"ok  " UID, HF__OUTBOX_SAID_NOTHING, -1},
                {"ok", HF__OUTBOX_SAID_NOTHING, -1},
                {"ok ", HF__OUTBOX_SAID_NOTHING, -1},
                {"", HF__OUTBOX_SAID_NOTHING, -1},
                {" ok " UID, HF__OUTBOX_SAID_NOTHING, -1},
                {"OK " UID, HF__OUTBOX_SAID_NOTHING, -1},
                {"ok ABCD", HF__OUTBOX_SAID_NOTHING, -1},
                {"ok x'; DROP TABLE", HF__OUTBOX_SAID_NOTHING, -1},
                {"ok " UID "\r", HF__OUTBOX_SAID_NOTHING, -1}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hf__outbox_said said;

        hf__outbox_read_line(rows[i].line, &said);
        assert_int_equal(said.word, rows[i].word);
        if (said.word != HF__OUTBOX_SAID_NOTHING)
            assert_int_equal(said.asked_ms, rows[i].asked_ms);
    }
}

/* Messages with one letter as their key, and ids from 1 on. */
enum { MESSAGES_MAX = 16 };
struct batch {
    struct hf__outbox_item items[MESSAGES_MAX];
    char keys[MESSAGES_MAX][2];
    size_t count;
};

static void fetched(struct batch *batch, const char *keys)
{
    int table[2 * MESSAGES_MAX];

    *batch = (struct batch){.count = strlen(keys)};
    for (size_t i = 0; i < batch->count; i++) {
        batch->keys[i][0] = keys[i];
        batch->items[i].key = batch->keys[i];
        batch->items[i].id = i + 1;
    }
    hf__outbox_link(batch->items, batch->count, table, 2 * MESSAGES_MAX);
}

static int next(const struct batch *batch, size_t from)
{
    return hf__outbox_next(batch->items, batch->count, from);
}

static void one_message_per_key_at_a_time(void **state)
{
    struct batch batch;

    (void)state;
    fetched(&batch, "aabab");
    assert_int_equal(next(&batch, 0), 0);
    batch.items[0].step = HF__OUTBOX_SENT;
    assert_int_equal(next(&batch, 0), 2);
    batch.items[2].step = HF__OUTBOX_SENT;
    assert_int_equal(next(&batch, 0), -1);
    batch.items[0].step = HF__OUTBOX_DONE;
    assert_int_equal(next(&batch, 0), 1);
    assert_int_equal(next(&batch, 2), -1);
    batch.items[1].step = batch.items[3].step = HF__OUTBOX_DONE;
    assert_int_equal(next(&batch, 0), -1);
    batch.items[2].step = HF__OUTBOX_DONE;
    assert_int_equal(next(&batch, 0), 4);
}

/* What is parked behind it has a lower id than what came later, and is not among these. */
static void behind_one_that_had_failed_nothing_is_sent(void **state)
{
    struct batch batch;

    (void)state;
    fetched(&batch, "aa");
    batch.items[0].attempts = 3;
    assert_int_equal(next(&batch, 0), 0);
    batch.items[0].step = HF__OUTBOX_DONE;
    assert_int_equal(next(&batch, 0), -1);
    assert_int_equal(hf__outbox_parked_by(batch.items, 1), 0);
}

static void who_is_parked(void **state)
{
    struct batch batch;

    (void)state;
    fetched(&batch, "abaabc");
    batch.items[0].step = HF__OUTBOX_FAILED;
    batch.items[1].step = HF__OUTBOX_SENT;
    batch.items[5].blocker = 99;
    assert_int_equal(next(&batch, 0), -1);
    assert_int_equal(hf__outbox_parked_by(batch.items, 2), 1);
    assert_int_equal(hf__outbox_parked_by(batch.items, 3), 1);
    assert_int_equal(hf__outbox_parked_by(batch.items, 4), 0); /* b is still under way */
    assert_int_equal(hf__outbox_parked_by(batch.items, 5), 99);
}

static void keys_that_share_a_place_are_told_apart(void **state)
{
    static char keys[8][8];
    struct hf__outbox_item items[8] = {0};
    int table[16];

    (void)state;
    for (int i = 0; i < 8; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "key%d", i / 2);
        items[i].key = keys[i];
    }
    hf__outbox_link(items, 8, table, 16);
    for (int i = 0; i < 8; i++)
        assert_int_equal(items[i].before, i % 2 == 1 ? i - 1 : -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_over_http),
        cmocka_unit_test(pauses_double_up_to_five_minutes),
        cmocka_unit_test(a_receiver_may_ask_for_a_pause),
        cmocka_unit_test(the_last_attempt_is_the_end),
        cmocka_unit_test(lines_of_a_command),
        cmocka_unit_test(one_message_per_key_at_a_time),
        cmocka_unit_test(behind_one_that_had_failed_nothing_is_sent),
        cmocka_unit_test(who_is_parked),
        cmocka_unit_test(keys_that_share_a_place_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
