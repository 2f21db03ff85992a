/* damage.c - makes stores to be damaged, and tries what is left of them. */
#include "damage.h"
#include "stores/file/slot.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void name_of(char *out, size_t size, int i)
{
    (void)snprintf(out, size, "lock-%d", i);
}

struct sample make_sample_of(const char *boot_id)
{
    struct sample sample = {.dir = kit_fast_dir()};
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    struct stat st;
    char name[32];

    kit_world =
        (struct kit_world){.wall_fake = true, .wall_us = 1, .no_fsync = true, .boot_id = boot_id};
    base = kit_open(sample.dir);
    for (int i = 0; i < NAMES; i++) {
        name_of(name, sizeof name, i);
        kit_expect(kit_take_detached(base, name, 3600000, &hold, &err), HF_OK, &err);
        sample.last[i] = hold.token;
        if (hold.token > sample.highest)
            sample.highest = hold.token;
        if (i % 5 == 0)
            kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    }
    kit_close(base);
    assert_int_equal(stat(kit_slots(sample.dir), &st), 0);
    sample.size = st.st_size;
    assert_true(sample.size > PAGE_SIZE * (off_t)PAGES_FIRST);
    return sample;
}

struct sample make_sample(void)
{
    return make_sample_of(NULL);
}

static bool count_one(const struct hf_lock_info *info, void *data)
{
    (void)info;
    ++*(int *)data;
    return true;
}

bool refused(enum hf_status status, const struct hf_error *err)
{
    if (status == HF_OK || status == HF_BUSY)
        return false;
    kit_expect(status, HF_CORRUPT, err);
    if (strstr(err->text, "holdfast --store 'file:") == NULL || strstr(err->text, "repair") == NULL)
        fail_msg("the way out is not named: %s", err->text);
    return true;
}

bool use_all(const char *dir)
{
    struct hf_query query = {.name = "", .deadline_ns = HF_NEVER};
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    bool found = false;
    int count = 0;
    char name[32];

    if (refused(kit_try_open(dir, &base, &err), &err))
        return true;
    found = refused(base->ops->list(base, &query, count_one, &count, &err), &err);
    for (int i = 0; i < NAMES; i++) {
        enum hf_status status;

        name_of(name, sizeof name, i);
        status = kit_take(base, name, 1000, 0, &hold, &err);
        found = refused(status, &err) || found;
        if (status == HF_OK)
            found = refused(kit_drop(base, &hold, &err), &err) || found;
    }
    kit_close(base);
    return found;
}

void repair(const char *dir, uint64_t above)
{
    struct hf_error report = {0};
    char url[600];

    (void)snprintf(url, sizeof url, "file:%s", dir);
    kit_expect(hf__file_ops.repair(&kit_host, url, above, &report), HF_OK, &report);
    assert_true(strlen(report.text) > 0);
}

void usable(const char *dir, const struct sample *sample)
{
    struct hf_store_base *base = kit_open(dir);
    char name[32];

    for (int i = 0; i < NAMES; i++) {
        struct kit_hold hold;
        struct hf_error err = {0};
        enum hf_status status;

        name_of(name, sizeof name, i);
        status = kit_take(base, name, 1000, 0, &hold, &err);
        assert_false(refused(status, &err));
        if (status == HF_OK && hold.token <= sample->last[i])
            fail_msg("token %llu of %s after %llu", (unsigned long long)hold.token, name,
                     (unsigned long long)sample->last[i]);
        if (status == HF_OK)
            kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    }
    kit_close(base);
    assert_false(use_all(dir));
}

/* A copy of a slot file is refused: its header names another file. */
static void make_own(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct file_header header;
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pread(fd, &header, sizeof header, 0), sizeof header);
    header.inode = (uint64_t)st.st_ino;
    hf__sum_set(&header);
    assert_int_equal(pwrite(fd, &header, sizeof header, 0), sizeof header);
    (void)close(fd);
}

void fresh_copy(const char *from, const char *to)
{
    kit_remove(to);
    assert_int_equal(mkdir(to, 0700), 0);
    kit_copy(from, to);
    make_own(kit_slots(to));
}

void flip(const char *path, off_t at, unsigned char bits)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    unsigned char byte = 0;

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= bits;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    (void)close(fd);
}
