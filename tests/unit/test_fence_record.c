/* test_fence_record.c - the sidecar's record. */
#include "fence/fence.h"

#include "../support/check.h"
#include <string.h>

static void record_round_trip(void **state)
{
    char slot[HF__FENCE_SLOT_SIZE];
    struct hf__fence_record in = {
        .seq = UINT64_MAX,
        .mark = {.token = INT64_MAX, .admitted_us = INT64_MIN, .issuer = ""},
        .pending = {.offset = INT64_MAX, .len = HF_FENCE_APPEND_MAX, .hash = UINT64_MAX}};
    struct hf__fence_record out;

    (void)state;
    memset(in.mark.issuer, '%', HF_FENCE_ISSUER_MAX); /* the longest when encoded */
    hf__fence_record_encode(slot, &in);
    assert_true(hf__fence_record_decode(slot, &out));
    assert_true(out.seq == in.seq && out.mark.token == in.mark.token);
    assert_true(out.mark.admitted_us == in.mark.admitted_us);
    assert_string_equal(out.mark.issuer, in.mark.issuer);
    assert_memory_equal(&in.pending, &out.pending, sizeof in.pending);
    assert_int_equal(slot[HF__FENCE_SLOT_SIZE - 1], '\n');

    /* Any byte of the text that changes is noticed. The padding behind it may be anything. */
    for (char *c = slot; c < strstr(slot, " sum=") + strlen(" sum=") + 16; c++) {
        *c = (char)(*c ^ 1);
        assert_false(hf__fence_record_decode(slot, &out));
        *c = (char)(*c ^ 1);
    }
    memset(slot, 0, sizeof slot);
    assert_false(hf__fence_record_decode(slot, &out));
    memset(slot, 'x', sizeof slot);
    assert_false(hf__fence_record_decode(slot, &out));
    memcpy(slot + sizeof slot - 5, " sum=", 5);
    assert_false(hf__fence_record_decode(slot, &out));
}

static void newest_record(void **state)
{
    char slots[HF__FENCE_SLOTS * HF__FENCE_SLOT_SIZE];
    struct hf__fence_record record;
    bool unsettled;

    (void)state;
    for (uint64_t i = 0; i < HF__FENCE_SLOTS; i++)
        hf__fence_record_encode(slots + i * HF__FENCE_SLOT_SIZE,
                                &(struct hf__fence_record){.seq = 7 + i, .mark = {.token = i + 1}});
    assert_true(hf__fence_record_newest(slots, sizeof slots, &record, &unsettled));
    assert_true(record.mark.token == 3 && !unsettled);
    slots[2 * HF__FENCE_SLOT_SIZE + 20] ^= 1; /* torn while it was written */
    assert_true(hf__fence_record_newest(slots, sizeof slots, &record, &unsettled));
    assert_true(record.mark.token == 2);
    assert_true(hf__fence_record_newest(slots, sizeof slots - 100, &record, &unsettled));
    assert_false(hf__fence_record_newest(slots, 100, &record, &unsettled));
    hf__fence_record_encode(
        slots, &(struct hf__fence_record){.seq = 7, .pending = {.len = 4, .offset = 0}});
    assert_true(hf__fence_record_newest(slots, sizeof slots, &record, &unsettled));
    assert_true(unsettled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_round_trip),
        cmocka_unit_test(newest_record),
    };

    return cmocka_run_group_tests_name("fence record", tests, NULL, NULL);
}
