/* test_etcd_base64.c - base64, there and back. */
#include "stores/etcd/base64.h"

#include "../support/check.h"
#include <string.h>

static void test_base64(void **state)
{
    static const char *const pairs[][2] = {
        {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
        {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xff\xfe\xfd", "//79"}};
    static const char *const bad[] = {
        "Z", "Zg", "Zg=", "Zg=x", "Z===", "====", "Zh==", "Zm9=", "Z*==", "Zm8=Zm8="};
    char text[32];
    size_t len;
    bool good = true;
    bool cut;

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        text[ec_base64_encode(text, pairs[i][0], strlen(pairs[i][0]))] = '\0';
        good = good && strcmp(text, pairs[i][1]) == 0;
        good = good && ec_base64_decode(text, sizeof text, pairs[i][1], &len) &&
               len == strlen(pairs[i][0]) && memcmp(text, pairs[i][0], len) == 0;
    }
    check_that(good, "base64 there and back");
    good = true;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        good = good && !ec_base64_decode(text, sizeof text, bad[i], &len);
    check_that(good, "base64 that no encoder makes is refused");
    check_that(!ec_base64_decode(text, 2, "Zm9v", &len), "so is what does not fit");
    check_that(ec_base64_decode_start(text, 5, "Zm9vYmFy", &len, &cut) && cut && len == 3 &&
                   memcmp(text, "foo", 3) == 0 &&
                   ec_base64_decode_start(text, 6, "Zm9vYmFy", &len, &cut) && !cut && len == 6 &&
                   !ec_base64_decode_start(text, 6, "Zm9*", &len, &cut),
               "unless its start will do");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64),
    };

    return cmocka_run_group_tests_name("etcd base64", tests, NULL, NULL);
}
