/* test_etcd_answer.c - numbers and watches in the answers of etcd. */
#include "stores/etcd/answer.h"

#include "../support/check.h"
#include <stdlib.h>
#include <string.h>

static void test_numbers(void **state)
{
    static const struct {
        const char *json;
        int64_t number;
    } rows[] = {
        {"{\"n\":\"9223372036854775807\"}", INT64_MAX},
        {"{\"n\":\"-9223372036854775807\"}", -INT64_MAX},
        {"{\"n\":\"9223372036854775808\"}", 0},
        {"{\"n\":\"18446744073709551616\"}", 0},
        {"{\"n\":\"+1\"}", 0},
        {"{\"n\":\"1e3\"}", 0},
        {"{\"n\":\"--1\"}", 0},
        {"{\"n\":\"\"}", 0},
        {"{\"n\":true}", 0},
        {"{\"n\":[1]}", 0},
        {"{}", 0},
        {"{\"n\":5}", 5},
        {"{\"n\":-5}", -5},
        {"{\"n\":4294967296}", 4294967296}, /* a revision that is cut off would come twice */
        {"{\"n\":9007199254740992}", 9007199254740992},
        {"{\"n\":9007199254740994}", 0}, /* a JSON number of that size may be any of several */
        {"{\"n\":1e300}", 0},
        {"{\"n\":1.5}", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        cJSON *json = ec_answer_parse(rows[i].json, strlen(rows[i].json));

        check_row(json != NULL && ec_answer_number(json, "n") == rows[i].number, i);
        cJSON_Delete(json);
    }
}

static enum ec_event feed(const char *text)
{
    struct ec_stream stream = {0};
    enum ec_event event;

    ec_stream_feed(&stream, text, strlen(text));
    event = stream.event;
    ec_stream_clear(&stream);
    return event;
}

static void test_streams(void **state)
{
    char *endless = malloc(EC_EVENT_MAX + 2);

    (void)state;
    check_that(feed("{\"result\":{\"created\":true}}\n") == EC_EVENT_CREATED &&
                   feed("{\"result\":{\"created\":true}}") == EC_EVENT_NONE,
               "a watch begins, when its line is complete");
    check_that(
        feed("{\"result\":{}}\n{\"result\":{\"events\":[{\"kv\":{}},{\"type\":\"DELETE\"}]}}\n") ==
            EC_EVENT_HEARD,
        "a deletion is heard; a put is not one");
    check_that(feed("{\"result\":{\"canceled\":true,\"created\":true}}\n") == EC_EVENT_BROKEN &&
                   feed("{\"result\":{\"compact_revision\":\"5\"}}\n") == EC_EVENT_BROKEN &&
                   feed("{\"error\":{\"message\":\"x\"}}\n") == EC_EVENT_BROKEN &&
                   feed("what?\n") == EC_EVENT_BROKEN,
               "cancelled, compacted, refused and garbage: broken");
    if (endless != NULL) {
        memset(endless, 'x', EC_EVENT_MAX + 1);
        endless[EC_EVENT_MAX + 1] = '\0';
        check_that(feed(endless) == EC_EVENT_BROKEN, "a line without end: broken");
    }
    free(endless);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_streams),
    };

    return cmocka_run_group_tests_name("etcd answer", tests, NULL, NULL);
}
