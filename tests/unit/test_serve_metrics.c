/* test_serve_metrics.c - what /metrics says: 600 series at most, and never at the store's pace. */
#include "../support/check.h"
#include "../support/fake_store.h"

#include "base/base.h"
#include "serve/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_FIRST = 100, CODE_LAST = 599 };

static struct world {
    struct fake_store *fake;
    struct serve serve;
    struct text said;
} world;

static int set_up(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    world.fake = fake_new(HF_FEATURE_DETACHED);
    world.serve.store = fake_open(world.fake);
    (void)snprintf(world.serve.scheme, sizeof world.serve.scheme, "fake");
    world.serve.metrics = metrics_open(&world.serve);
    assert_non_null(world.serve.metrics);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    metrics_close(world.serve.metrics);
    hf_close(world.serve.store);
    fake_free(world.fake);
    text_release(&world.said);
    return 0;
}

static void scrape(void)
{
    struct exchange x = {.serve = &world.serve};

    text_release(&world.said);
    metrics_handle(&x);
    assert_int_equal(x.answer.code, 200);
    text_add(&x.answer.body, "", 1);
    assert_false(x.answer.body.failed);
    world.said = x.answer.body;
}

/* Scrapes until the store has been asked that often, and nothing is under way. */
static void scrape_until_asked(size_t times)
{
    for (int i = 0; i < 1000 && fake_count(world.fake, FAKE_LIST) < times; i++)
        scrape();
    assert_int_equal(fake_count(world.fake, FAKE_LIST), times);
    scrape();
}

static bool says(const char *line)
{
    char wanted[256];

    (void)snprintf(wanted, sizeof wanted, "\n%s\n", line);
    return strstr(world.said.data, wanted) != NULL;
}

static void what_happened_is_counted(void **state)
{
    struct metrics *m = world.serve.metrics;

    (void)state;
    world.serve.waiters = 3;
    world.serve.clients = 5;
    metrics_count(m, OP_RENEW, 200);
    metrics_count(m, OP_RENEW, 200);
    metrics_count(m, OP_RENEW, 410);
    metrics_duration(m, OP_RENEW, 4 * HF__NS_PER_MS);
    metrics_duration(m, OP_RENEW, 30 * HF__NS_PER_MS);
    metrics_wait(m, HF_OK, 90 * HF__NS_PER_S);
    metrics_limited(m, LIMIT_WAITERS);
    scrape();
    assert_true(says("holdfast_http_requests_total{op=\"renew\",status=\"200\"} 2"));
    assert_true(says("holdfast_http_requests_total{op=\"renew\",status=\"410\"} 1"));
    assert_true(says("holdfast_http_request_duration_seconds_bucket{op=\"renew\",le=\"0.005\"} 1"));
    assert_true(says("holdfast_http_request_duration_seconds_bucket{op=\"renew\",le=\"0.1\"} 2"));
    assert_true(says("holdfast_http_request_duration_seconds_bucket{op=\"renew\",le=\"+Inf\"} 2"));
    assert_true(says("holdfast_http_request_duration_seconds_sum{op=\"renew\"} 0.034000"));
    assert_true(says("holdfast_wait_duration_seconds_bucket{status=\"HF_OK\",le=\"60\"} 0"));
    assert_true(says("holdfast_wait_duration_seconds_bucket{status=\"HF_OK\",le=\"300\"} 1"));
    assert_true(says("holdfast_limited_total{limit=\"waiters\"} 1"));
    assert_true(says("holdfast_limited_total{limit=\"clients\"} 0"));
    assert_true(says("holdfast_waiters 3"));
    assert_true(says("holdfast_clients 5"));
}

/* An alert looks at the increase: a series that begins with 1 has none. */
static void what_an_alert_waits_for_is_there_from_the_start(void **state)
{
    (void)state;
    scrape();
    assert_true(says("holdfast_http_requests_total{op=\"acquire\",status=\"504\"} 0"));
    assert_true(says("holdfast_http_requests_total{op=\"renew\",status=\"504\"} 0"));
    assert_true(says("holdfast_http_requests_total{op=\"release\",status=\"504\"} 0"));
}

static void only_words_of_the_store_are_answers(void **state)
{
    struct metrics *m = world.serve.metrics;

    (void)state;
    fake_always(world.fake, FAKE_LIST, (struct fake_answer){.status = HF_UNREACHABLE});
    metrics_store(m, OP_RENEW, HF_UNREACHABLE, 1);
    metrics_store(m, OP_RENEW, HF_UNKNOWN, 1);
    metrics_wait(m, HF_CANCELLED, 1);
    scrape_until_asked(1);
    assert_true(says("holdfast_store_last_answer_timestamp_seconds 0.000"));
    metrics_store(m, OP_RENEW, HF_LOST, 1);
    scrape();
    assert_false(says("holdfast_store_last_answer_timestamp_seconds 0.000"));
}

static void there_are_never_more_than_600_series(void **state)
{
    static char names[SERVE_WATCH_MAX][16];
    struct metrics *m = world.serve.metrics;
    size_t series = 0;

    (void)state;
    for (size_t i = 0; i < SERVE_WATCH_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "lock %zu", i);
        world.serve.options.watch[i] = names[i];
    }
    world.serve.options.watch_count = SERVE_WATCH_MAX;
    for (int op = 0; op < OPS; op++) {
        for (int code = CODE_FIRST; code <= CODE_LAST; code++)
            metrics_count(m, (enum serve_op)op, code);
        metrics_duration(m, (enum serve_op)op, 1);
    }
    for (int status = 0; status <= HF_NOMEM; status++)
        metrics_wait(m, (enum hf_status)status, 1);
    /* What asks the store. */
    for (int op = 0; op < OPS; op++)
        if (op != OP_HEALTHZ && op != OP_PAGE && op != OP_OTHER)
            metrics_store(m, (enum serve_op)op, HF_OK, 1);
    scrape_until_asked(SERVE_WATCH_MAX);
    assert_true(says("holdfast_lock_held{lock=\"lock 99\"} 1"));
    for (const char *line = world.said.data; *line != '\0'; line = strchr(line, '\n') + 1)
        series += *line != '#';
    assert_in_range(series, 450, 600);
}

static void the_store_is_asked_every_five_seconds_at_most(void **state)
{
    (void)state;
    world.serve.options.watch[0] = "a \"quoted\\ name";
    world.serve.options.watch[1] = "b";
    world.serve.options.watch_count = 2;
    scrape_until_asked(2);
    scrape();
    scrape();
    assert_int_equal(fake_count(world.fake, FAKE_LIST), 2);
    assert_string_equal(fake_call(world.fake, FAKE_LIST, 1).name, "b");
    assert_true(says("holdfast_lock_held{lock=\"a \\\"quoted\\\\ name\"} 1"));
    assert_true(says("holdfast_lock_held_seconds{lock=\"b\"} 0.000"));
}

static void a_store_that_hangs_holds_up_nobody(void **state)
{
    int64_t began_ns = hf__now_ns();

    (void)state;
    world.serve.options.watch[0] = "a";
    world.serve.options.watch[1] = "b";
    world.serve.options.watch_count = 2;
    fake_always(world.fake, FAKE_LIST,
                (struct fake_answer){.status = HF_UNREACHABLE, .delay_ms = 2000});
    scrape();
    assert_true(hf__now_ns() - began_ns < HF__NS_PER_S);
    assert_null(strstr(world.said.data, "holdfast_lock_held{lock=\"a\"}"));
    assert_false(metrics_end(world.serve.metrics, hf__now_ns() + HF__NS_PER_MS));
    /* And is not asked about the next lock. */
    metrics_close(world.serve.metrics);
    assert_int_equal(fake_count(world.fake, FAKE_LIST), 1);
    world.serve.metrics = metrics_open(&world.serve);
}

#define with_world(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_world(what_happened_is_counted),
        with_world(what_an_alert_waits_for_is_there_from_the_start),
        with_world(only_words_of_the_store_are_answers),
        with_world(there_are_never_more_than_600_series),
        with_world(the_store_is_asked_every_five_seconds_at_most),
        with_world(a_store_that_hangs_holds_up_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
