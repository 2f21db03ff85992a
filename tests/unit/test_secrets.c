/* test_secrets.c - no piece of a password in any text, however carelessly the URL was written.
 *
 * Every password, in every shape of URL, for every scheme. Most of these URLs are refused; the rest
 * lead to a port where nobody listens. Either way there are texts for people, and they are searched
 * for every four bytes of the password.
 * run: late asan
 * run: slow */
#include "../support/check.h"
#include "client/client.h"
#include "core/fence.h"

#include <holdfast/repair.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE 4 /* bytes of a password that must not be seen */

/* All that the library knows, and one that it does not. */
static const char *schemes[32] = {"nobody"};
static size_t scheme_count = 1;

static const char *const passwords[] = {
    "Zq7xWv9kJp3m",        "Zq7x@Wv9k",           "Zq7x:Wv9k",           "Zq7x/Wv9k",
    "Zq7x#Wv9k",           "Zq7x?Wv9k",           "Zq7x%Wv9k",           "Zq7x%41Wv9k",
    "Zq7x%00Wv9k",         "Zq7x Wv9k",           "Zq7x\"Wv9k",          "Zq7x'Wv9k",
    "Zq7x&Wv9k",           "Zq7x=Wv9k",           "Zq7x,Wv9k",           "Zq7x\\Wv9k",
    "Zq7x\nWv9k",          "@Zq7xWv9k",           "/Zq7xWv9k",           "?Zq7xWv9k",
    "#Zq7xWv9k",           ":Zq7xWv9k",           "Zq7xWv9k@",           "Zq7xWv9k/",
    "Zq7x@Wv9k:Jp3m/Hy6t", "Zq7x/Wv9k@Jp3m:Hy6t", "Zq7x@Wv9k/Jp3m",      "Zq7x@Wv9k?Jp3m",
    "Zq7x@Wv9k#Jp3m",      "Zq7x@Wv9k?a=Jp3m",    "Zq7x?a=Wv9k&b=Jp3m",  "Zq7x?a=Wv9k@Jp3m",
    "4711/Zq7xWv9k",       "4711#Zq7xWv9k",       "4711?Zq7xWv9k",       "Zq7x,4711:12/Wv9k",
    "[Zq7x]:Wv9k",         "[f::e]:Zq7x/Wv9k",    "Zq7Q://Wv9k:Jp3m@Hy", "Zq7x@[Wv9k]:12/Jp3m",
};

/* %s is the password as it is, %e with everything escaped. A host that nobody answers at. */
static const char *const shapes[] = {
    "//user:%s@127.0.0.1:1",
    "//user:%s@127.0.0.1:1/0?bogus=1",
    "//:%s@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3",
    "//user@tenant:%s@127.0.0.1:1/db",
    "//user:%s@[::1]:1/0",
    "//user:%s@127.0.0.1:99999/x",
    "//user:%s@/run/nobody.sock",
    "//user:%s@",
    "//user:%s",
    "//127.0.0.1:%s",
    "//127.0.0.1:1,user:%s@127.0.0.1:1",
    "user:%s@127.0.0.1:1",
    "/user:%s@127.0.0.1:1",
    "//127.0.0.1:1/0?password=%s",
    "//127.0.0.1:1/0?max_ttl=5s&sslpassword=%s&prefix=a",
    "//127.0.0.1:1/0?passwd=%e",
    "//127.0.0.1:1/0?max_ttl=%s",
    "//127.0.0.1:1/0?bogus=%s",
    "//user:%e@127.0.0.1:1/0?bogus=1",
    "//user:%e@127.0.0.1:1/0",
    "//:%e@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3",
    "//127.0.0.1:1/db?listen=postgres%3A%2F%2Fu%3A%e%40127.0.0.1%3A1%2Fdb",
    "//127.0.0.1:1/db?listen=postgres://u:%s@127.0.0.1:1/db",
};

static void make_url(char *out, size_t size, const char *scheme, const char *shape,
                     const char *password)
{
    const char *mark = strstr(shape, "%s") != NULL ? strstr(shape, "%s") : strstr(shape, "%e");
    char escaped[256];

    assert_true(hf__url_encode(escaped, sizeof escaped, password));
    (void)snprintf(out, size, "%s:%.*s%s%s", scheme, (int)(mark - shape), shape,
                   mark[1] == 'e' ? escaped : password, mark + 2);
}

/* The first four bytes of the password that are in the text, or NULL. */
static const char *shown_piece(const char *text, const char *password)
{
    for (; strlen(password) >= PIECE; password++) {
        char piece[PIECE + 1] = {0};

        memcpy(piece, password, PIECE);
        if (strstr(text, piece) != NULL)
            return password;
    }
    return NULL;
}

static int check_text(const char *what, const char *url, const char *text, const char *password)
{
    const char *piece = shown_piece(text, password);

    if (piece == NULL)
        return 0;
    print_error("%s of %s\n  shows %.4s: %s\n", what, url, piece, text);
    return 1;
}

/* What cannot be told from a host and its port, or is no password to anybody. */
static bool is_fair(const char *scheme, const char *shape, const char *password)
{
    bool is_file = strcmp(scheme, "file") == 0;
    bool no_at = strcmp(shape, "//user:%s") == 0 || strcmp(shape, "//127.0.0.1:%s") == 0;

    if (no_at && (password[0] == '4' || strchr(password, '@') != NULL))
        return false;
    if (strchr(shape, '?') != NULL && strstr(shape, "%s") > strchr(shape, '?') &&
        strstr(password, "&b=") != NULL)
        return false; /* that is another parameter */
    return !is_file || strncmp(shape, "//", 2) == 0;
}

/* ZooKeeper's library tries for seconds, so it is only given URLs that are refused. */
static bool is_slow(const char *scheme, const char *shape)
{
    return strcmp(scheme, "zookeeper") == 0 && strstr(shape, "bogus") == NULL;
}

/* Not a path, or a parameter with a harmless name: there only an error's text has to keep quiet. */
static bool can_tell(const char *shape)
{
    return strncmp(shape, "/user", 5) != 0 && strstr(shape, "max_ttl=%s") == NULL &&
           strstr(shape, "bogus=%s") == NULL;
}

static int try_all(const char *scheme, const char *shape, const char *password)
{
    char url[600];
    char text[600];
    struct hf_store *store;
    struct hf_error err = {0};
    int bad = 0;

    make_url(url, sizeof url, scheme, shape, password);
    if (can_tell(shape)) {
        hf__url_redact(text, sizeof text, url);
        bad += check_text("redaction", url, text, password);
        hf__fence_issuer(text, url);
        bad += check_text("issuer", url, text, password);
    }
    assert_true(hf_repair(url, 0, &err) != HF_OK);
    bad += check_text("repair", url, err.text, password);
    if (is_slow(scheme, shape))
        return bad;
    if (hf_open(url, &store, &err) == HF_OK) {
        print_error("%s was opened\n", url);
        return bad + 1;
    }
    return bad + check_text("error", url, err.text, password);
}

static void no_piece_of_a_password(void **state)
{
    int bad = 0;

    (void)state;
    for (size_t i = 0; i < scheme_count; i++)
        for (size_t j = 0; j < COUNT(shapes); j++)
            for (size_t k = 0; k < COUNT(passwords); k++)
                if (is_fair(schemes[i], shapes[j], passwords[k]))
                    bad += try_all(schemes[i], shapes[j], passwords[k]);
    assert_int_equal(bad, 0);
}

/* The user, and the password, with each character of a keyboard in each place: whatever a URL's
 * delimiters make of it. */
static int try_user(const char *scheme, const char *user, const char *password)
{
    static const char *const rests[] = {"@127.0.0.1:1",
                                        "@127.0.0.1:1/0?prefix=a",
                                        "@[::1]:1/x",
                                        "@h1:1,h2:2,h3:3?max_ttl=5s",
                                        "@",
                                        "@/run/nobody.sock"};
    static const char *const slashes[] = {"//", "/", ""};
    char url[300], text[300];
    int bad = 0;

    for (size_t i = 0; i < COUNT(rests) * COUNT(slashes); i++) {
        const char *form = slashes[i % COUNT(slashes)];

        (void)snprintf(url, sizeof url, "%s%s%s:%s%s", scheme, form, user, password,
                       rests[i / COUNT(slashes)]);
        if (strncmp(url, "file:/", 6) == 0 && url[6] != '/')
            continue; /* a path */
        hf__url_redact(text, sizeof text, url);
        bad += check_text("redaction", url, text, password);
        hf__url_brief(text, sizeof text, url);
        bad += check_text("brief", url, text, password);
        hf__fence_issuer(text, url);
        bad += check_text("issuer", url, text, password);
        /* The password of one that is clear is where the last '@' says: stores read it so. */
        if (hf__url_is_clear(url) && form[0] == '/' && form[1] == '/' &&
            strcspn(url + strlen(scheme) + 2, "/?#") < strlen(user) + 1 + strlen(password)) {
            print_error("is clear: %s\n", url);
            bad++;
        }
    }
    return bad;
}

static void no_delimiter_in_a_user_name_shows_the_password(void **state)
{
    static const char *const some[] = {"redis:", "REDIS:", "postgres:", "file:", "nobody:", ""};
    static const char delimiters[] = "/?#@&=%[],;";
    char user[32], password[32];
    int bad = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(some); i++) {
        for (char c = ' '; c <= '~'; c++) {
            const char *const forms[] = {"us%cer", "%cuser", "user%c", "us%c%cer"};

            if (c == ':') /* ends a user name */
                continue;
            for (size_t j = 0; j < COUNT(forms); j++) {
                (void)snprintf(user, sizeof user, forms[j], c, c);
                bad += try_user(some[i], user, "Zq7xWv9k");
            }
            for (const char *d = delimiters; *d != '\0'; d++) {
                (void)snprintf(user, sizeof user, "u%cs%ce=r", c, *d);
                (void)snprintf(password, sizeof password, "Zq7x%cWv9k%cJp3m", *d, c);
                bad += try_user(some[i], user, password);
                bad += try_user(some[i], "user", password);
                bad += try_user(some[i], "", password);
            }
        }
    }
    assert_int_equal(bad, 0);
}

/* The same where it is opened: refused before anybody connects, without a word of it. */
static void such_a_user_name_is_refused(void **state)
{
    static const char *const users[] = {"us#er", "us/er", "us?er", "us?a=er", "#", "/", "?"};
    char url[128];

    (void)state;
    for (size_t i = 0; i < scheme_count; i++)
        for (size_t j = 0; j < COUNT(users); j++) {
            struct hf_store *store;
            struct hf_error err = {0};

            (void)snprintf(url, sizeof url, "%s://%s:Zq7xWv9k@127.0.0.1:1", schemes[i], users[j]);
            assert_int_equal(hf_open(url, &store, &err), HF_INVALID);
            assert_int_equal(check_text("error", url, err.text, "Zq7xWv9k"), 0);
        }
}

/* Without its value, and only if it is an option at all. */
static void the_wrong_option_is_named(void **state)
{
    static const struct {
        const char *url;
        const char *said;
    } rows[] = {
        {"redis://127.0.0.1:1?prefix=a&max_ttl=Zq7x&tls=off", "max_ttl"},
        {"redis://127.0.0.1:1?verify=Zq7x", "verify"},
        {"redis://127.0.0.1:1?node_timeout=5s", "node_timeout"},
        {"redis://127.0.0.1:1?Zq7x=on", "unknown"},
        {"redis://127.0.0.1:1?Zq7x=on&max_ttl=5s", "node_timeout, sentinel_user"},
        {"redis://127.0.0.1:1?prefix=%zz", "escape"},
        {"etcd://127.0.0.1:1?tls=Zq7x", "tls"},
        {"etcd://127.0.0.1:1?Zq7x=1", "unknown"},
        {"redis://127.0.0.1:1?maxttl=5s",
         "the option \"maxttl\" is unknown; did you mean max_ttl?"},
        {"redis://127.0.0.1:1?frobnicate=on", "the option \"frobnicate\" is unknown; known are"},
        {"etcd://127.0.0.1:1?prefx=1", "\"prefx\" is unknown; did you mean prefix?"},
        {"zookeeper://127.0.0.1:1?tikc=1", "\"tikc\" is unknown; did you mean tick?"},
        {"postgres://127.0.0.1:1/db?maxttl=5s", "\"maxttl\""},
        {"zookeeper://127.0.0.1:1?password_file=", "password_file"},
        {"zookeeper://127.0.0.1:1?Zq7x=1", "unknown"},
        {"postgres://127.0.0.1:1/db?max_ttl=Zq7x", "max_ttl"},
        {"postgres://127.0.0.1:1/db?listen=Zq7x", "listen"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hf_store *store;
        struct hf_error err = {0};

        assert_int_equal(hf_open(rows[i].url, &store, &err), HF_INVALID);
        /* Not in a list of everything that there is. */
        if (strstr(err.text, rows[i].said) == NULL ||
            (strstr(err.text, "known are") != NULL) != (strstr(rows[i].said, "known are") != NULL ||
                                                        strstr(rows[i].url, "?Zq7x=") != NULL))
            fail_msg("%s: %s", rows[i].url, err.text);
        check_row(strstr(err.text, "Zq7x") == NULL, i);
    }
}

/* As the error about an unknown one lists them. */
static int learn_schemes(void **state)
{
    static struct hf_error err;
    struct hf_store *store;
    char *rest, *name;

    (void)state;
    if (hf_open("nosuch://h", &store, &err) != HF_UNSUPPORTED ||
        (rest = strstr(err.text, "known are ")) == NULL)
        return -1;
    rest += strlen("known are ");
    while ((name = strsep(&rest, ", ")) != NULL && scheme_count < COUNT(schemes))
        if (name[0] != '\0')
            schemes[scheme_count++] = name;
    return scheme_count > 12 ? 0 : -1; /* or there are none of them, and the rest proves nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_piece_of_a_password),
        cmocka_unit_test(no_delimiter_in_a_user_name_shows_the_password),
        cmocka_unit_test(such_a_user_name_is_refused), cmocka_unit_test(the_wrong_option_is_named)};
    const char *build = getenv("BUILD");
    char stores[256];
    char *path;

    (void)snprintf(stores, sizeof stores, "%s/stores", build != NULL ? build : "build");
    path = realpath(stores, NULL); /* relative folders are passed over */
    if (path == NULL || setenv("HOLDFAST_STORE_PATH", path, 1) != 0)
        return 1;
    free(path);
    return cmocka_run_group_tests_name("secrets", tests, learn_schemes, NULL);
}
