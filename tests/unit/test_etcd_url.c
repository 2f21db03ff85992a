/* test_etcd_url.c - what the URL of an etcd cluster says. */
#include "stores/etcd/etcd.h"

#include "../support/check.h"
#include <string.h>

static void test_urls(void **state)
{
    struct ec_url url;
    struct hf_error err;

    (void)state;
    check_that(ec_url_parse("etcd://h", &url, &err) == HF_OK && url.common.host_count == 1 &&
                   strcmp(url.endpoints[0], "http://h:2379") == 0 &&
                   strcmp(url.prefix, "holdfast/") == 0,
               "a host alone: port, prefix and no TLS");
    check_that(ec_url_parse("etcd://u:p%40w@h1:1,[::1]:2/?ca=/c", &url, &err) == HF_OK && url.tls &&
                   strcmp(url.endpoints[1], "https://[::1]:2") == 0 &&
                   strcmp(url.common.user, "u") == 0 && strcmp(url.common.password, "p@w") == 0 &&
                   strstr(url.common.shown, "p%40w") == NULL,
               "user, password, hosts and an authority; the password is not shown");
    check_that(ec_url_parse("etcd://h x:1", &url, &err) == HF_INVALID &&
                   ec_url_parse("etcd://h#x", &url, &err) == HF_INVALID &&
                   ec_url_parse("etcd://h:99999", &url, &err) == HF_INVALID &&
                   ec_url_parse("etcd://h?prefix=a%1f", &url, &err) == HF_INVALID &&
                   ec_url_parse("etcd://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", &url, &err) ==
                       HF_INVALID,
               "what is no host, port or prefix is refused");
    check_that(ec_url_parse("etcd://h?tls=off", &url, &err) == HF_OK && !url.tls &&
                   ec_url_parse("etcd://h?tls=off&ca=/c", &url, &err) == HF_INVALID &&
                   ec_url_parse("etcd://h?ca=/c&tls=off", &url, &err) == HF_INVALID &&
                   ec_url_parse("etcd://h?cert=/c&key=/k&tls=on", &url, &err) == HF_OK && url.tls,
               "TLS is not both wanted and switched off, in whichever order");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),
    };

    return cmocka_run_group_tests_name("etcd url", tests, NULL, NULL);
}
