/* places.c - children that open a store as somebody else. */
#include "places.h"

#include <grp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

void expect(enum hf_status got, enum hf_status want, const struct hf_error *err, int line)
{
    if (got != want)
        kit_die("line %d: %s instead of %s: %s", line, hf_status_name(got), hf_status_name(want),
                err->text);
}

void in_child(void (*fn)(void *), const char *dir)
{
    int status = kit_wait(kit_spawn(fn, (void *)(uintptr_t)dir));

    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        print_message("# skipped: not root, or mounts are not allowed here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

void become(uid_t uid, gid_t group)
{
    if (geteuid() != 0)
        _exit(SKIPPED);
    CHECK(setgroups(1, &group) == 0 && setgid(group) == 0 && setuid(uid) == 0);
}

enum hf_status try_open(const char *dir, const char *parameter, struct hf_store **out,
                        struct hf_error *err)
{
    char url[800];

    (void)snprintf(url, sizeof url, "file:%s%s", dir, parameter);
    return hf_open(url, out, err);
}
