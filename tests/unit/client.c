/* client.c - a store that answers as it is told, opened by libholdfast. */
#include "client.h"

#define ALL                                                                                        \
    (HF_FEATURE_FAIR | HF_FEATURE_CRASH_RELEASE | HF_FEATURE_DURABLE_TOKENS |                      \
     HF_FEATURE_DETACHED | HF_FEATURE_RENEW_TTL)

int set_up(void **state)
{
    static struct world world;

    world.fake = fake_new(ALL);
    world.store = fake_open(world.fake);
    *state = &world;
    return 0;
}

int tear_down(void **state)
{
    struct world *world = *state;

    hf_close(world->store);
    assert_int_equal(fake_count(world->fake, FAKE_CLOSE), 1);
    assert_false(fake_call(world->fake, FAKE_CLOSE, 0).forked);
    fake_free(world->fake);
    return 0;
}

struct hf_acquire_options by_hand(uint32_t ttl_ms)
{
    return (struct hf_acquire_options){
        .size = sizeof(struct hf_acquire_options), .ttl_ms = ttl_ms, .no_keeper = true};
}

struct hf_lease *take(struct world *world, const struct hf_acquire_options *options)
{
    struct hf_lease *lease;
    struct hf_error err = {.code = HF_NOMEM, .retry_after_ms = 1, .text = "old"};

    assert_int_equal(hf_acquire(world->store, "job", options, &lease, &err), HF_OK);
    assert_int_equal(err.code, HF_OK); /* cleared, as the header says */
    assert_string_equal(err.text, "");
    assert_non_null(lease);
    return lease;
}

void give(struct hf_lease *lease)
{
    struct hf_error err;

    assert_int_equal(hf_release(lease, &err), HF_OK);
    assert_int_equal(err.code, HF_OK);
}
