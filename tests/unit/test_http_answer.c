/* test_http_answer.c - what an answer of the server says. */
#include "base/base.h"
#include "stores/http/http.h"

#include "../support/check.h"
#include <string.h>

#define GRANT                                                                                      \
    "{\"token\":\"5\",\"owner\":\"00112233445566778899aabbccddeeff\",\"ttl_ms\":1000,\"after_"     \
    "ms\":"

static void a_grant_counts_from_the_request(void **state)
{
    static const struct {
        const char *text;
        int64_t wanted_ms; /* < 0: it is none */
    } rows[] = {
        {GRANT "0}", 0},
        {GRANT "100}", 99},
        {GRANT "10000}", 9900}, /* the answer came after ten seconds */
        {GRANT "20000}", 9900}, /* and nothing can be later than that */
        {GRANT "-5}", 0},
        {GRANT "\"x\"}", 0},
        {"{\"token\":5,\"owner\":\"00112233445566778899aabbccddeeff\",\"ttl_ms\":1000}", -1},
        {"{\"token\":\"0\",\"owner\":\"00112233445566778899aabbccddeeff\",\"ttl_ms\":1000}", -1},
        {"{\"token\":\"5\",\"owner\":\"00112233445566778899AABBCCDDEEFF\",\"ttl_ms\":1000}", -1},
        {"{\"token\":\"5\",\"owner\":\"0011\",\"ttl_ms\":1000}", -1},
        {"{\"token\":\"5\",\"owner\":\"00112233445566778899aabbccddeeff\",\"ttl_ms\":0}", -1},
        {"{\"token\":\"5\",\"owner\":\"00112233445566778899aabbccddeeff\",\"ttl_ms\":1e12}", -1},
        {"{}", -1},
    };
    int64_t sent_ns = 1000 * HF__NS_PER_S;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        cJSON *json = ht_parse(rows[i].text, strlen(rows[i].text));
        struct hf_grant grant = {0};
        bool good;

        assert_non_null(json);
        good = ht_granted(json, sent_ns, sent_ns + 10 * HF__NS_PER_S, &grant);
        check_row(good == (rows[i].wanted_ms >= 0), i);
        if (good) {
            check_row(grant.sent_at_ns == sent_ns + rows[i].wanted_ms * HF__NS_PER_MS, i);
            check_row(grant.token == 5 && grant.ttl_ms == 1000, i);
        }
        cJSON_Delete(json);
    }
}

static void what_is_no_answer(void **state)
{
    static const char *const texts[] = {
        "", "[]", "1", "\"x\"", "<html>", "{", "{}x{", "null", "{\"a\":[[[[[1]]]]]}"};

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        cJSON *json = ht_parse(texts[i], strlen(texts[i]));

        check_row(json == NULL || strcmp(texts[i], "{}x{") == 0, i);
        cJSON_Delete(json);
    }
}

static void statuses(void **state)
{
    enum hf_status status;

    (void)state;
    for (int i = HF_OK; i <= HF_NOMEM; i++) {
        check_row(ht_status(hf_status_name((enum hf_status)i), &status), i);
        check_row((int)status == i, i);
    }
    assert_false(ht_status("waiting", &status));
    assert_false(ht_status("", &status));
    assert_true(hf__utf8_valid("gr\xc3\xbc\xc3\x9f"));
    assert_false(hf__utf8_valid("\xff\xfe"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grant_counts_from_the_request),
        cmocka_unit_test(what_is_no_answer),
        cmocka_unit_test(statuses),
    };

    return cmocka_run_group_tests_name("http answer", tests, NULL, NULL);
}
