/* test_trace.c - HOLDFAST_TRACE writes a line per call, and never an owner or a password. */
#include "../support/record.h"
#include "../support/check.h"
#include <holdfast.h>
#include <holdfast/record.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[256];
static char url[300];

static int set_up(void **state)
{
    (void)state;
    check_temp_dir(dir, sizeof dir);
    (void)snprintf(url, sizeof url, "file:%s/store", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    check_remove_dir(dir);
    return 0;
}

static bool see(const struct hf_lock_info *info, void *data)
{
    (void)info;
    (void)data;
    return true;
}

static bool see_record(const struct hf_record *record, void *data)
{
    (void)record;
    (void)data;
    return true;
}

/* A life of a lease and what else there is to call; owners are noted in out. */
static void use_it_all(char owners[2][HF_OWNER_LEN + 1])
{
    struct hf_acquire_options options = {.size = sizeof options, .detached = true};
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_lease *again;
    struct hf_error err;

    assert_int_equal(hf_open(url, &store, &err), HF_OK);
    assert_int_equal(hf_acquire(store, "first job", NULL, &lease, &err), HF_OK);
    memcpy(owners[0], hf_lease_owner(lease), HF_OWNER_LEN + 1);
    assert_int_equal(hf_acquire(store, "first job", NULL, &again, &err), HF_BUSY);
    assert_int_equal(hf_renew(lease, 0, &err), HF_OK);
    assert_int_equal(hf_list(store, "", see, NULL, &err), HF_OK);
    assert_int_equal(hf_record_put(lease, "key", "secret", 6, 0, &err), HF_OK);
    assert_int_equal(get_record(store, "first job", "key", see_record, NULL, &err), HF_OK);
    assert_int_equal(hf_record_list(store, "first job", "", see_record, NULL, &err), HF_OK);
    assert_int_equal(hf_release(lease, &err), HF_OK);
    assert_int_equal(hf_acquire(store, "second job", &options, &lease, &err), HF_OK);
    memcpy(owners[1], hf_lease_owner(lease), HF_OWNER_LEN + 1);
    assert_int_equal(hf_adopt(store, "second job", owners[1], hf_lease_token(lease), &again, &err),
                     HF_OK);
    hf_leave(lease);
    assert_int_equal(hf_release(again, &err), HF_OK);
    assert_int_equal(hf_adopt(store, "second job", owners[1], 1, &again, &err), HF_LOST);
    assert_true(hf_store_life_fd(store) >= 0); /* what is optional is passed on */
    assert_int_equal(hf_store_features(store) & HF_FEATURE_FAIR, HF_FEATURE_FAIR);
    hf_close(store);
}

/* What use_it_all writes to standard error. */
static void listen(char *out, size_t size, char owners[2][HF_OWNER_LEN + 1])
{
    char path[300];
    int saved = dup(STDERR_FILENO);
    ssize_t got;
    int fd;

    (void)snprintf(path, sizeof path, "%s/trace", dir);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && saved >= 0);
    (void)fflush(stderr);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
    use_it_all(owners);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    got = pread(fd, out, size - 1, 0);
    assert_true(got >= 0);
    out[got] = '\0';
    (void)close(fd);
}

static void a_line_per_call(void **state)
{
    static const char *const expected[] = {
        "acquire  first job            HF_OK in ",
        "acquire  first job            HF_BUSY in ",
        "renew    first job            HF_OK in ",
        "list                          HF_OK in ",
        "put      first job            HF_OK in ",
        "get      first job            HF_OK in ",
        "records  first job            HF_OK in ",
        "release  first job            HF_OK in ",
        "acquire  second job           HF_OK in ",
        "renew    second job           HF_OK in ", /* hf_adopt looks */
        "release  second job           HF_OK in ",
        "renew    second job           HF_LOST in ",
        "close                         HF_OK in ",
    };
    char owners[2][HF_OWNER_LEN + 1];
    char trace[8192];
    char *line = trace;

    (void)state;
    assert_int_equal(setenv("HOLDFAST_TRACE", "1", 1), 0);
    listen(trace, sizeof trace, owners);
    assert_null(strstr(trace, owners[0]));
    assert_null(strstr(trace, owners[1]));
    assert_null(strstr(trace, "secret")); /* nor what is in a record */
    for (size_t i = 0; i < COUNT(expected); i++) {
        check_row(strncmp(line, "holdfast: ", 10) == 0, i);
        check_row(strncmp(line + 10, expected[i], strlen(expected[i])) == 0, i);
        line = strchr(line, '\n');
        check_row(line != NULL, i);
        line++;
    }
    assert_int_equal(*line, '\0');
}

static void silent_unless_asked(void **state)
{
    char owners[2][HF_OWNER_LEN + 1];
    char trace[8192];

    (void)state;
    assert_int_equal(unsetenv("HOLDFAST_TRACE"), 0);
    listen(trace, sizeof trace, owners);
    assert_string_equal(trace, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_per_call),
        cmocka_unit_test(silent_unless_asked),
    };

    return cmocka_run_group_tests_name("trace", tests, set_up, tear_down);
}
