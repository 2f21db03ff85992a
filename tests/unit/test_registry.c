/* test_registry.c - from a URL to a store: built in, from a plugin, or why not. */
#include "../support/check.h"
#include "client/client.h"

#include <holdfast/repair.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char plugins[PATH_MAX]; /* where the build puts the plugins of the tests */
static char empty[256];        /* a folder of our own */

static int set_up(void **state)
{
    const char *build = getenv("BUILD");
    char relative[PATH_MAX];

    (void)state;
    (void)snprintf(relative, sizeof relative, "%s/tests/plugins", build != NULL ? build : "build");
    check_temp_dir(empty, sizeof empty);
    return realpath(relative, plugins) == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    check_remove_dir(empty);
    return 0;
}

static enum hf_status find(const char *url, struct hf_error *err)
{
    const struct hf_store_ops *ops = NULL;
    enum hf_status status = hf__registry_find(url, &ops, err);

    assert_true((status == HF_OK) == (ops != NULL));
    return status;
}

static void no_urls(void **state)
{
    static const char *const urls[] = {"/var/lib/x",
                                       "x",
                                       "FILE:/x",
                                       "://x",
                                       "1a:/x",
                                       ":",
                                       "a-scheme-of-more-than-thirty-two-bytes:x",
                                       "../../x:y"};
    char longest[HF__URL_MAX + 8];
    struct hf_error err;

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++) {
        check_row(find(urls[i], &err) == HF_INVALID, i);
        check_row(strstr(err.text, "file:DIR") != NULL, i); /* what to write instead */
    }
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "file:/", 6);
    longest[HF__URL_MAX] = '\0';
    assert_int_equal(find(longest, &err), HF_INVALID);
    longest[HF__URL_MAX - 1] = '\0';
    assert_int_equal(find(longest, &err), HF_OK);
}

static void unknown_schemes_and_missing_plugins(void **state)
{
    static const struct {
        const char *url;
        const char *needs;
        const char *apt;
    } known[] = {{"etcd://h", "etcd.so", "libcurl4-openssl-dev libcjson-dev"},
                 {"zookeeper://h", "zookeeper.so", "libzookeeper-mt-dev"},
                 {"postgres://h/db", "postgres.so", "libpq-dev"},
                 {"postgresql://h/db", "postgres.so", "libpq-dev"}};
    struct hf_error err;
    struct hf_store *store = (struct hf_store *)&err;

    (void)state;
    assert_int_equal(setenv("HOLDFAST_STORE_PATH", empty, 1), 0);
    assert_int_equal(find("gopher://u:secret@h", &err), HF_UNSUPPORTED);
    assert_non_null(strstr(err.text, "gopher"));
    assert_non_null(strstr(err.text, "file"));
    assert_non_null(strstr(err.text, "redis"));
    assert_null(strstr(err.text, "secret"));
    for (size_t i = 0; i < COUNT(known); i++) {
        check_row(find(known[i].url, &err) == HF_UNSUPPORTED, i);
        check_row(strstr(err.text, known[i].needs) != NULL, i);
        check_row(strstr(err.text, known[i].apt) != NULL, i);
        check_row(strstr(err.text, "HOLDFAST_STORE_PATH to its folder, an absolute path") != NULL,
                  i);
    }
    assert_int_equal(find("a-scheme-of-thirty-two-bytes-tha:x", &err), HF_UNSUPPORTED);
    assert_non_null(strstr(err.text, ", postgres")); /* all of it fits */
    assert_int_equal(hf_open("gopher://h", &store, &err), HF_UNSUPPORTED);
    assert_null(store);
    assert_int_equal(hf_repair("gopher://h", 0, &err), HF_UNSUPPORTED);
    assert_int_equal(hf_open("nonsense", &store, NULL), HF_INVALID);
}

static void a_file_that_is_no_plugin(void **state)
{
    char path[300];
    struct hf_error err;
    FILE *file;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/broken.so", empty);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("not a shared object", file);
    (void)fclose(file);
    assert_int_equal(setenv("HOLDFAST_STORE_PATH", empty, 1), 0);
    assert_int_equal(find("broken://h", &err), HF_UNSUPPORTED);
    assert_non_null(strstr(err.text, "broken"));
    assert_non_null(strstr(err.text, "cannot be loaded"));
}

static void plugins_that_do_not_fit(void **state)
{
    struct hf_error err;

    (void)state;
    assert_int_equal(setenv("HOLDFAST_STORE_PATH", plugins, 1), 0);
    assert_int_equal(find("future://h", &err), HF_UNSUPPORTED);
    assert_non_null(strstr(err.text, "ABI 3"));
    assert_int_equal(find("past://h", &err), HF_UNSUPPORTED);
    assert_non_null(strstr(err.text, "built for store ABI 1, this library has 2"));
    assert_int_equal(find("liar://h", &err), HF_UNSUPPORTED);
    assert_non_null(strstr(err.text, "liar"));
    assert_int_equal(find("nosymbol://h", &err), HF_UNSUPPORTED);
    assert_non_null(strstr(err.text, "hf_store_plugin"));
    assert_int_equal(find("empty://h", &err), HF_UNSUPPORTED);
}

static void use(const char *url)
{
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;

    assert_int_equal(hf_open(url, &store, &err), HF_OK);
    assert_string_equal(hf_store_url(store), "tiny://u@h");
    assert_int_equal(hf_store_features(store), 0);
    assert_int_equal(hf_store_life_fd(store), -1);
    assert_int_equal(hf_acquire(store, "job", NULL, &lease, &err), HF_OK);
    assert_int_equal(hf_renew(lease, 0, &err), HF_OK);
    assert_int_equal(hf_release(lease, &err), HF_OK);
    hf_close(store);
    assert_int_equal(hf_repair(url, 0, &err), HF_UNSUPPORTED);
}

static void a_plugin_is_found_on_the_path(void **state)
{
    char path[PATH_MAX + 600];

    (void)state;
    /* Empty parts and folders that are not there are no trouble; the first that has it counts. */
    (void)snprintf(path, sizeof path, ":/nowhere:%s:%s:", empty, plugins);
    assert_int_equal(setenv("HOLDFAST_STORE_PATH", path, 1), 0);
    use("tiny://u:secret@h");
    use("tiny://u:secret@h"); /* and again, already loaded */
}

/* A table that is shorter than ours: what is behind its end must not be read, not even by the
 * decorator. */
static void an_older_plugin(void **state)
{
    int saved = dup(STDERR_FILENO);
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;

    (void)state;
    assert_non_null(
        freopen("/dev/null", "w", stderr)); /* what the trace says is tested elsewhere */
    assert_int_equal(setenv("HOLDFAST_STORE_PATH", plugins, 1), 0);
    for (int traced = 0; traced < 2; traced++) {
        if (traced)
            assert_int_equal(setenv("HOLDFAST_TRACE", "1", 1), 0);
        assert_int_equal(hf_open("old://h", &store, &err), HF_OK);
        assert_string_equal(hf_store_url(store), "old://h");
        assert_int_equal(hf_store_life_fd(store), -1);
        assert_int_equal(hf_acquire(store, "job", NULL, &lease, &err), HF_OK);
        assert_int_equal(hf_release(lease, &err), HF_OK);
        hf_close(store);
        assert_int_equal(hf_repair("old://h", 0, &err), HF_UNSUPPORTED);
    }
    assert_int_equal(unsetenv("HOLDFAST_TRACE"), 0);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
}

static bool count_one(const struct hf_lock_info *info, void *data)
{
    (void)info;
    ++*(int *)data;
    return true;
}

static int locks_in(const char *url)
{
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;
    int count = 0;

    assert_int_equal(hf_open_readonly(url, &store, &err), HF_OK);
    assert_int_equal(hf_list(store, NULL, count_one, &count, &err), HF_OK);
    assert_int_equal(hf_inspect(store, "free", count_one, &count, &err), HF_OK);
    assert_int_equal(hf_acquire(store, "job", NULL, &lease, &err), HF_INVALID);
    assert_non_null(strstr(err.text, "read-only"));
    assert_null(lease);
    assert_int_equal(hf_adopt(store, "job", "0123456789abcdef0123456789abcdef", 1, &lease, &err),
                     HF_INVALID);
    assert_int_equal(hf_store_life_fd(store), -1);
    if (strncmp(url, "file:", 5) == 0)
        assert_string_equal(hf_store_url(store), url);
    hf_close(store);
    return count;
}

/* A client that only looks sees what there is, and makes and takes nothing. */
static void opened_readonly(void **state)
{
    char path[300];
    char url[310];
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/to be", empty);
    (void)snprintf(url, sizeof url, "file:%s", path);
    assert_int_equal(locks_in(url), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(hf_open(url, &store, &err), HF_OK);
    assert_int_equal(locks_in(url), 0);
    assert_int_equal(hf_acquire(store, "job", NULL, &lease, &err), HF_OK);
    assert_int_equal(locks_in(url), 1);
    assert_int_equal(hf_release(lease, &err), HF_OK);
    hf_close(store);

    /* A looker is no user of the store. */
    assert_int_equal(hf_open_readonly(url, &store, &err), HF_OK);
    assert_int_equal(hf_repair(url, 0, &err), HF_OK);
    hf_close(store);

    assert_int_equal(setenv("HOLDFAST_STORE_PATH", plugins, 1), 0);
    assert_int_equal(locks_in("old://h"), 0); /* a store for which opening is no more than that */
}

/* HF_OK with a text is a warning, and nothing else is one. */
static void a_store_may_warn(void **state)
{
    struct hf_open_options options = {.size = sizeof options};
    struct hf_store *store;
    struct hf_error err;

    (void)state;
    assert_int_equal(setenv("HOLDFAST_STORE_PATH", plugins, 1), 0);
    assert_int_equal(hf_open("wary://hint", &store, &err), HF_OK);
    assert_int_equal(err.code, HF_OK);
    assert_string_equal(err.text, "store wary: mind the ?[2J gap");
    hf_close(store);
    assert_int_equal(hf_open_readonly("wary://hint", &store, &err), HF_OK);
    assert_non_null(strstr(err.text, "mind"));
    hf_close(store);
    assert_int_equal(hf_open_waiting("wary://hint", &options, &store, &err), HF_OK);
    assert_non_null(strstr(err.text, "mind"));
    hf_close(store);
    assert_int_equal(hf_open("wary://hint", &store, NULL), HF_OK);
    hf_close(store);
    assert_int_equal(hf_open("wary://leftover", &store, &err), HF_OK);
    assert_int_equal(err.code, HF_OK);
    assert_string_equal(err.text, "");
    hf_close(store);
    assert_int_equal(hf_open("tiny://h", &store, &err), HF_OK); /* err has an old text */
    assert_string_equal(err.text, "");
    hf_close(store);
}

struct watcher {
    unsigned troubles;
    int cancel; /* written to at the third */
    const char *mood;
};

static void set_mood(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void watch(const struct hf_error *why, void *data)
{
    struct watcher *watcher = data;

    assert_int_equal(why->code, HF_UNREACHABLE);
    if (++watcher->troubles < 3)
        return;
    if (watcher->cancel > 0)
        assert_int_equal(write(watcher->cancel, "x", 1), 1);
    else
        set_mood(watcher->mood, "open ok\n");
}

static void a_store_that_is_down_is_waited_for(void **state)
{
    char mood[300], url[320];
    struct watcher watcher = {.mood = mood};
    struct hf_open_options options = {
        .size = sizeof options, .wait_ms = -1, .on_trouble = watch, .data = &watcher};
    struct hf_store *store;
    struct hf_error err;
    int ends[2];

    (void)state;
    assert_int_equal(setenv("HOLDFAST_STORE_PATH", plugins, 1), 0);
    (void)snprintf(mood, sizeof mood, "%s/mood", empty);
    (void)snprintf(url, sizeof url, "moody:%s", mood);
    set_mood(mood, "open unreachable\n");
    assert_int_equal(hf_open_waiting(url, &options, &store, &err), HF_OK);
    assert_int_equal(watcher.troubles, 3);
    hf_close(store);

    set_mood(mood, "open unreachable\n");
    assert_int_equal(pipe(ends), 0);
    watcher = (struct watcher){.cancel = ends[1]};
    options.cancel_fd = ends[0];
    assert_int_equal(hf_open_waiting(url, &options, &store, &err), HF_CANCELLED);
    assert_null(store);
    assert_int_equal(watcher.troubles, 3);
    (void)close(ends[0]);
    (void)close(ends[1]);

    watcher = (struct watcher){0};
    options = (struct hf_open_options){.size = sizeof options, .on_trouble = watch};
    assert_int_equal(hf_open_waiting(url, &options, &store, &err), HF_UNREACHABLE);
    assert_int_equal(watcher.troubles, 0);
    options.size = 0;
    assert_int_equal(hf_open_waiting(url, &options, &store, &err), HF_INVALID);
    assert_int_equal(hf_open_waiting(url, NULL, &store, NULL), HF_INVALID);
    set_mood(mood, "open denied\n");
    options = (struct hf_open_options){.size = sizeof options, .wait_ms = -1};
    assert_int_equal(hf_open_waiting(url, &options, &store, &err), HF_DENIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_urls),
        cmocka_unit_test(unknown_schemes_and_missing_plugins),
        cmocka_unit_test(a_file_that_is_no_plugin),
        cmocka_unit_test(plugins_that_do_not_fit),
        cmocka_unit_test(a_plugin_is_found_on_the_path),
        cmocka_unit_test(an_older_plugin),
        cmocka_unit_test(opened_readonly),
        cmocka_unit_test(a_store_may_warn),
        cmocka_unit_test(a_store_that_is_down_is_waited_for),
    };

    return cmocka_run_group_tests_name("registry", tests, set_up, tear_down);
}
