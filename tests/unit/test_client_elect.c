/* test_client_elect.c - standing for election and asking who leads, over a made-up store and over
 * the embedded one.
 * run: threads */
#include "client.h"

#include <holdfast/elect.h>
#include <holdfast/record.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the callbacks saw. */
struct terms {
    size_t count;
    size_t last; /* return false in this term, from 1; 0: never */
    uint64_t token[8];
    size_t lost;
    enum hf_loss reason;
    bool wait_for_loss; /* stay until the lease is lost */
    int cancel_fd;      /* > 0: written to in the first term, which goes on */
};

static bool lead(struct hf_lease *lease, void *data)
{
    struct terms *terms = data;

    terms->token[terms->count++] = hf_lease_token(lease);
    if (terms->wait_for_loss)
        check_soon(hf_lease_remaining_ms(lease) <= 0);
    if (terms->cancel_fd > 0)
        assert_int_equal(write(terms->cancel_fd, "x", 1), 1);
    return terms->count != terms->last;
}

static void note_loss(struct hf_lease *lease, enum hf_loss reason, void *data)
{
    struct terms *terms = data;

    assert_true(hf_lease_remaining_ms(lease) <= 0);
    terms->lost++;
    terms->reason = reason;
}

static struct hf_elect_options options_of(struct terms *terms)
{
    return (struct hf_elect_options){.size = sizeof(struct hf_elect_options),
                                     .on_elected = lead,
                                     .on_lost = note_loss,
                                     .data = terms};
}

static void a_term_is_a_hold_and_false_ends_it(void **state)
{
    struct world *world = *state;
    struct terms terms = {.last = 1};
    struct hf_elect_options options = options_of(&terms);
    struct hf_error err;

    options.ttl_ms = 5000;
    options.label = "me";
    assert_int_equal(hf_elect(world->store, "job", &options, &err), HF_OK);
    assert_int_equal(terms.count, 1);
    assert_int_equal(terms.token[0], 1);
    assert_int_equal(terms.lost, 0);
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 1);
    assert_int_equal(fake_call(world->fake, FAKE_ACQUIRE, 0).ttl_ms, 5000);
    assert_string_equal(fake_call(world->fake, FAKE_ACQUIRE, 0).label, "me");
    assert_true(fake_call(world->fake, FAKE_ACQUIRE, 0).wait_until_ns == HF_NEVER);
}

static void a_short_term_is_followed_by_a_pause_and_another(void **state)
{
    struct world *world = *state;
    struct terms terms = {.last = 2};
    struct hf_elect_options options = options_of(&terms);
    int64_t before_ns = hf__now_ns();

    assert_int_equal(hf_elect(world->store, "job", &options, NULL), HF_OK);
    assert_int_equal(terms.count, 2);
    assert_true(terms.token[1] > terms.token[0]);
    assert_true(hf__now_ns() - before_ns >= HF__NS_PER_S);
    assert_true(fake_call(world->fake, FAKE_ACQUIRE, 1).at_ns -
                    fake_call(world->fake, FAKE_RELEASE, 0).at_ns >=
                HF__NS_PER_S); /* outside the line */
}

static void a_lost_lock_is_told_and_not_taken_back(void **state)
{
    struct world *world = *state;
    struct terms terms = {.last = 1, .wait_for_loss = true};
    struct hf_elect_options options = options_of(&terms);
    struct hf_error err;

    options.ttl_ms = 300;
    fake_always(world->fake, FAKE_RENEW,
                (struct fake_answer){.status = HF_LOST, .loss = HF_LOSS_TAKEN});
    fake_always(world->fake, FAKE_RELEASE, (struct fake_answer){.status = HF_LOST});
    assert_int_equal(hf_elect(world->store, "job", &options, &err), HF_LOST);
    assert_int_equal(terms.lost, 1);
    assert_int_equal(terms.reason, HF_LOSS_TAKEN);
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 1);
}

static void a_cancel_between_two_terms_ends_it(void **state)
{
    struct world *world = *state;
    struct terms terms = {.last = 0};
    struct hf_elect_options options = options_of(&terms);
    struct hf_error err;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    options.cancel_fd = ends[0];
    terms.cancel_fd = ends[1];
    assert_int_equal(hf_elect(world->store, "job", &options, &err), HF_CANCELLED);
    assert_int_equal(terms.count, 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void what_waiting_would_not_help_is_returned(void **state)
{
    struct world *world = *state;
    struct terms terms = {.last = 1};
    struct hf_elect_options options = options_of(&terms);
    char control[] = "a\nb";
    char long_one[HF_ADDRESS_MAX + 2];
    struct hf_error err;

    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = HF_DENIED});
    assert_int_equal(hf_elect(world->store, "job", &options, &err), HF_DENIED);
    assert_int_equal(hf_elect(world->store, "", &options, &err), HF_INVALID);
    options.address = "here"; /* this store keeps no records */
    assert_int_equal(hf_elect(world->store, "job", &options, &err), HF_UNSUPPORTED);
    options.address = control;
    assert_int_equal(hf_elect(world->store, "job", &options, &err), HF_INVALID);
    memset(long_one, 'x', sizeof long_one);
    long_one[sizeof long_one - 1] = '\0';
    options.address = long_one;
    assert_int_equal(hf_elect(world->store, "job", &options, &err), HF_INVALID);
    options.address = NULL;
    options.on_elected = NULL;
    assert_int_equal(hf_elect(world->store, "job", &options, &err), HF_INVALID);
    options.size = 0;
    assert_int_equal(hf_elect(world->store, "job", &options, &err), HF_INVALID);
    assert_int_equal(terms.count, 0);
}

/* The embedded store, which keeps records. */

struct place {
    char dir[64];
    struct hf_store *store;
};

static int make_place(void **state)
{
    static struct place place;
    char url[80];

    (void)snprintf(place.dir, sizeof place.dir, "/tmp/holdfast-elect.XXXXXX");
    if (mkdtemp(place.dir) == NULL)
        return 1;
    (void)snprintf(url, sizeof url, "file:%s", place.dir);
    *state = &place;
    return hf_open(url, &place.store, NULL) == HF_OK ? 0 : 1;
}

static int remove_place(void **state)
{
    struct place *place = *state;
    char command[80];

    hf_close(place->store);
    (void)snprintf(command, sizeof command, "rm -rf %s", place->dir);
    return system(command);
}
#define with_place(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

struct sight {
    size_t calls;
    uint64_t term;
    char address[64];
};

static void note_leader(const struct hf_leader *leader, void *data)
{
    struct sight *sight = data;

    assert_true(leader->size >= sizeof *leader);
    sight->calls++;
    sight->term = leader->term;
    (void)snprintf(sight->address, sizeof sight->address, "%s", leader->address);
}

static struct sight look(struct hf_store *store)
{
    struct sight sight = {.calls = 0};

    assert_int_equal(hf_leader(store, "job", note_leader, &sight, NULL), HF_OK);
    return sight;
}

struct stage {
    struct hf_store *store;
    struct sight sight;
};

static bool look_while_leading(struct hf_lease *lease, void *data)
{
    struct stage *stage = data;

    stage->sight = look(stage->store);
    assert_true(stage->sight.term == hf_lease_token(lease));
    return false;
}

static void the_address_is_on_record_before_the_leader_leads(void **state)
{
    struct place *place = *state;
    struct stage stage = {.store = place->store};
    struct hf_elect_options options = {.size = sizeof options,
                                       .address = "here:1",
                                       .on_elected = look_while_leading,
                                       .data = &stage};

    assert_int_equal(look(place->store).calls, 0);
    assert_int_equal(hf_elect(place->store, "job", &options, NULL), HF_OK);
    assert_int_equal(stage.sight.calls, 1);
    assert_string_equal(stage.sight.address, "here:1");
    assert_int_equal(look(place->store).calls, 0);
}

static void the_address_of_an_earlier_term_is_not_believed(void **state)
{
    struct place *place = *state;
    struct stage stage = {.store = place->store};
    struct hf_elect_options options = {.size = sizeof options,
                                       .address = "here:1",
                                       .on_elected = look_while_leading,
                                       .data = &stage};
    struct hf_lease *lease;
    struct sight sight;

    assert_int_equal(hf_elect(place->store, "job", &options, NULL), HF_OK);
    assert_int_equal(hf_acquire(place->store, "job", NULL, &lease, NULL), HF_OK);
    sight = look(place->store);
    assert_int_equal(sight.calls, 1);
    assert_true(sight.term == hf_lease_token(lease));
    assert_string_equal(sight.address, "");

    /* Nor is what no address can be. */
    assert_int_equal(hf_record_put(lease, HF_LEADER_KEY, "a\0b", 3, 0, NULL), HF_OK);
    assert_string_equal(look(place->store).address, "");
    assert_int_equal(hf_record_put(lease, HF_LEADER_KEY, "a\033[2J", 5, 0, NULL), HF_OK);
    assert_string_equal(look(place->store).address, "");
    assert_int_equal(hf_record_put(lease, HF_LEADER_KEY, "there:2", 7, 0, NULL), HF_OK);
    assert_string_equal(look(place->store).address, "there:2");
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(a_term_is_a_hold_and_false_ends_it),
        with_store(a_short_term_is_followed_by_a_pause_and_another),
        with_store(a_lost_lock_is_told_and_not_taken_back),
        with_store(a_cancel_between_two_terms_ends_it),
        with_store(what_waiting_would_not_help_is_returned),
        with_place(the_address_is_on_record_before_the_leader_leads),
        with_place(the_address_of_an_earlier_term_is_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
