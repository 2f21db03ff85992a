/* test_http_url.c - what the URL of a server says. */
#include "stores/http/url.h"

#include "../support/check.h"
#include <string.h>

static void urls(void **state)
{
    static const struct {
        const char *text;
        const char *endpoint; /* NULL: refused */
        const char *socket;
    } rows[] = {
        {"http://localhost:7070", "http://localhost:7070", ""},
        {"http://localhost", "http://localhost:80", ""},
        {"https://locks.example/", "https://locks.example:443", ""},
        {"https://locks.example/a/b/", "https://locks.example:443/a/b", ""},
        {"https://[::1]:8443/x?verify=off", "https://[::1]:8443/x", ""},
        {"http+unix:///run/holdfast/sock", "http://localhost", "/run/holdfast/sock"},
        {"http+unix:///tmp/a%20b", "http://localhost", "/tmp/a b"},
        {"http+unix:///", NULL, NULL},
        {"http+unix://host/path", NULL, NULL},
        {"http://", NULL, NULL},
        {"http://a,b", NULL, NULL},
        {"http://user:s3cret@host", NULL, NULL},
        {"http://host/../x", NULL, NULL},
        {"http://host/a b", NULL, NULL},
        {"http://ho st", NULL, NULL},
        {"http://host?ca=/x", NULL, NULL}, /* without TLS it means nothing */
        {"https://host?cert=/x", NULL, NULL},
        {"https://host?nosuch=1", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ht_url url;
        struct hf_error err;
        enum hf_status status = ht_url_parse(rows[i].text, &url, &err);

        check_row(status == (rows[i].endpoint != NULL ? HF_OK : HF_INVALID), i);
        check_row(strstr(err.text, "s3cret") == NULL, i);
        if (rows[i].endpoint != NULL) {
            assert_string_equal(url.endpoint, rows[i].endpoint);
            assert_string_equal(url.socket, rows[i].socket);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls),
    };

    return cmocka_run_group_tests_name("http url", tests, NULL, NULL);
}
