/* test_keeper_listen.c - a store that tells when a hold may be gone: the keeper asks at once, and
 * the answer alone decides.
 * run: threads */
#include "../support/check.h"
#include "../support/fake_store.h"
#include "base/base.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TTL_MS 60000 /* no renewal is due while a test runs */

/* What the store's listen slot does next, and what it saw. One test at a time uses it. */
static struct {
    int fd;                       /* eventfd: there is something to hear */
    char owner[HF_OWNER_LEN + 1]; /* of whom; "": any hold may be gone */
    atomic_int inside;            /* how many are in it */
    atomic_int calls;
    atomic_int wake_fd;   /* that of the first call; -1: none yet */
    atomic_bool mistaken; /* two at once, or another wake_fd */
} heard;

struct world {
    struct fake_store *fake;
    struct hf_store *store;
    atomic_int lost;
    atomic_int renewed;
    atomic_int reason;
};

static void listen_slot(struct hf_store_base *base, int wake_fd, hf_doubt_fn *doubt, void *data)
{
    struct pollfd fds[2] = {{.fd = wake_fd, .events = POLLIN}, {.fd = heard.fd, .events = POLLIN}};
    int none = -1;
    eventfd_t ignored;

    (void)base;
    if (atomic_fetch_add(&heard.inside, 1) != 0 ||
        (!atomic_compare_exchange_strong(&heard.wake_fd, &none, wake_fd) && none != wake_fd))
        atomic_store(&heard.mistaken, true);
    atomic_fetch_add(&heard.calls, 1);
    (void)poll(fds, 2, -1);
    if (eventfd_read(heard.fd, &ignored) == 0)
        doubt(heard.owner[0] != '\0' ? heard.owner : NULL, data);
    atomic_fetch_sub(&heard.inside, 1);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    heard.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    heard.owner[0] = '\0';
    atomic_store(&heard.calls, 0);
    atomic_store(&heard.wake_fd, -1);
    atomic_store(&heard.mistaken, false);
    world->fake = fake_new(HF_FEATURE_RENEW_TTL);
    fake_ops(world->fake)->listen = listen_slot;
    world->store = fake_open(world->fake);
    *state = world;
    return heard.fd >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    hf_close(world->store);
    fake_free(world->fake);
    (void)close(heard.fd);
    free(world);
    return atomic_load(&heard.mistaken) ? -1 : 0;
}

static void on_lost(struct hf_lease *lease, enum hf_loss reason, void *data)
{
    struct world *world = data;

    (void)lease;
    atomic_store(&world->reason, (int)reason);
    atomic_fetch_add(&world->lost, 1);
}

static void on_renewed(struct hf_lease *lease, int64_t remaining_ms, void *data)
{
    struct world *world = data;

    (void)lease;
    (void)remaining_ms;
    atomic_fetch_add(&world->renewed, 1);
}

static struct hf_lease *take(struct world *world, const char *name)
{
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = TTL_MS,
                                         .on_lost = on_lost,
                                         .on_renewed = on_renewed,
                                         .data = world};
    struct hf_lease *lease;

    assert_int_equal(hf_acquire(world->store, name, &options, &lease, NULL), HF_OK);
    return lease;
}

/* The store hears that the hold of owner ("": any) may be gone. */
static void hear(const char *owner)
{
    check_soon(atomic_load(&heard.inside) == 1);
    memcpy(heard.owner, owner, strlen(owner) + 1);
    assert_int_equal(eventfd_write(heard.fd, 1), 0);
}

static void a_loss_is_heard_at_once(void **state)
{
    struct world *world = *state;
    struct hf_lease *kept = take(world, "kept");
    struct hf_lease *gone = take(world, "gone");

    fake_always(world->fake, FAKE_RENEW,
                (struct fake_answer){.status = HF_LOST, .loss = HF_LOSS_BROKEN});
    hear(hf_lease_owner(gone));
    check_soon(atomic_load(&world->lost) == 1);
    assert_int_equal(atomic_load(&world->reason), HF_LOSS_BROKEN);
    assert_int_equal(hf_lease_loss(gone), HF_LOSS_BROKEN);
    /* Only the hold in doubt was asked for. */
    assert_int_equal(fake_count(world->fake, FAKE_RENEW), 1);
    assert_string_equal(fake_call(world->fake, FAKE_RENEW, 0).name, "gone");
    assert_int_equal(hf_lease_loss(kept), HF_LOSS_NONE);
    assert_int_equal(hf_release(gone, NULL), HF_LOST);
    assert_int_equal(hf_release(kept, NULL), HF_OK);
}

static void doubt_alone_loses_nothing(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, "job");

    hear(hf_lease_owner(lease));
    check_soon(atomic_load(&world->renewed) == 1);
    assert_int_equal(hf_lease_loss(lease), HF_LOSS_NONE);
    assert_int_equal(atomic_load(&world->lost), 0);
    /* And it listens again. */
    hear(hf_lease_owner(lease));
    check_soon(atomic_load(&world->renewed) == 2);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

static void every_hold_may_be_in_doubt(void **state)
{
    struct world *world = *state;
    struct hf_lease *leases[3];

    for (int i = 0; i < 3; i++)
        leases[i] = take(world, (const char *[]){"a", "b", "c"}[i]);
    hear("");
    check_soon(atomic_load(&world->renewed) == 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_lease_loss(leases[i]), HF_LOSS_NONE);
        assert_int_equal(hf_release(leases[i], NULL), HF_OK);
    }
}

/* A hold in doubt that nobody answers for is renewed until it is known, or its time is over. */
static void no_answer_is_no_loss(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, "job");

    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.status = HF_UNREACHABLE});
    hear(hf_lease_owner(lease));
    check_soon(atomic_load(&world->renewed) == 1);
    assert_true(fake_count(world->fake, FAKE_RENEW) >= 2);
    assert_int_equal(atomic_load(&world->lost), 0);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

/* An owner that has no hold here is passed over. */
static void a_strangers_hold_is_passed_over(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, "job");

    hear("00112233445566778899aabbccddeeff");
    check_soon(atomic_load(&heard.calls) >= 2 && atomic_load(&heard.inside) == 1);
    assert_int_equal(fake_count(world->fake, FAKE_RENEW), 0);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

#define with_store(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(a_loss_is_heard_at_once),         with_store(doubt_alone_loses_nothing),
        with_store(every_hold_may_be_in_doubt),      with_store(no_answer_is_no_loss),
        with_store(a_strangers_hold_is_passed_over),
    };

    return cmocka_run_group_tests_name("keeper_listen", tests, NULL, NULL);
}
