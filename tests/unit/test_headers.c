/* test_headers.c - the headers that a message brings, and what cannot be one. */
#include "../support/check.h"
#include "senders/http/headers.c"

static bool collect(const char *name, const char *value, void *data)
{
    size_t used = strlen(data);

    (void)snprintf((char *)data + used, 1000 - used, "%s=%s;", name, value);
    return true;
}

static void what_may_be_sent(void **state)
{
    static const struct {
        const char *object;
        const char *wanted;
    } rows[] = {
        {"{}", ""},
        {" { } ", ""},
        {"{\"A\": \"b\"}", "A=b;"},
        {"{\"A\":\"b\",\"C-d\":\"\"}", "A=b;C-d=;"},
        {"{\"A\":\"\\\"\\\\\\/\"}", "A=\"\\/;"},
        {"{\"A\":\"\\u00e4\\u20ac\\ud83d\\ude00\"}", "A=\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80;"}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char got[1000] = "";
        char why[200];

        check_row(headers_read(rows[i].object, collect, got, why, sizeof why), i);
        assert_string_equal(got, rows[i].wanted);
    }
}

static void what_may_not(void **state)
{
    static const char *const objects[] = {"",
                                          "[]",
                                          "{",
                                          "{\"a\"}",
                                          "{\"a\":1}",
                                          "{\"a\":{}}",
                                          "{\"a\":null}",
                                          "{\"a\":\"b\"",
                                          "{\"a\":\"b",
                                          "{\"a\":\"b\" \"c\":\"d\"}",
                                          "{\"a b\":\"c\"}",
                                          "{\"\":\"c\"}",
                                          "{\"a:\":\"c\"}",
                                          "{\"a\":\"x\\r\\nEvil: 1\"}",
                                          "{\"a\":\"\\u0000b\"}",
                                          "{\"a\":\"\\u007f\"}",
                                          "{\"a\":\"\\ud800\"}",
                                          "{\"a\":\"\\ude00\"}",
                                          "{\"a\":\"\\u12\"}",
                                          "{\"a\":\"\\x\"}",
                                          "{\"a\":\"\\",
                                          "{\"Idempotency-Key\":\"x\"}",
                                          "{\"fencing-token\":\"1\"}",
                                          "{\"HOLDFAST-KEY\":\"1\"}",
                                          "{\"Content-Length\":\"1\"}",
                                          "{\"transfer-encoding\":\"chunked\"}",
                                          "{\"host\":\"h\"}"};

    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++) {
        char got[1000] = "";
        char why[200] = "";

        check_row(!headers_read(objects[i], collect, got, why, sizeof why), i);
        check_row(why[0] != '\0', i);
    }
}

static void one_that_is_too_long(void **state)
{
    static char object[HEADERS_VALUE_MAX + 100];
    char got[1000] = "";
    char why[200];

    (void)state;
    (void)snprintf(object, sizeof object, "{\"a\":\"%0*d\"}", HEADERS_VALUE_MAX, 1);
    assert_false(headers_read(object, collect, got, why, sizeof why));
    (void)snprintf(object, sizeof object, "{\"%0*d\":\"a\"}", HEADERS_NAME_MAX, 1);
    assert_false(headers_read(object, collect, got, why, sizeof why));
}

static void keys_become_values(void **state)
{
    char out[20];

    (void)state;
    headers_encode(out, sizeof out, "a b%\r\n\xc3\xa4");
    assert_string_equal(out, "a%20b%25%0D%0A%C3");
    headers_encode(out, sizeof out, "order-7/x");
    assert_string_equal(out, "order-7/x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_be_sent),
        cmocka_unit_test(what_may_not),
        cmocka_unit_test(one_that_is_too_long),
        cmocka_unit_test(keys_become_values),
    };

    return cmocka_run_group_tests_name("headers", tests, NULL, NULL);
}
