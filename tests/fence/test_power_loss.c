/* test_power_loss.c - the file fence on a disk that loses power before each of its calls.
 *
 * After the power is back: the mark is not below any token that was answered with HF_OK, the
 * sidecar can be read, and the file is the last acknowledged one or the one being written, whole.
 */
#include "../support/fence_disk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 40, STEPS = 12, CUTS_MAX = 40, CONTENT_MAX = 6000 };

struct content {
    size_t len;
    unsigned char bytes[CONTENT_MAX];
};

/* What must be on the disk, and what may be after the step that was cut. */
struct model {
    uint64_t token; /* highest acknowledged */
    struct content now, next;
};

static const char path[] = "data";

static void check_content(struct disk *disk, const struct model *model)
{
    size_t len;
    const unsigned char *bytes = disk_read(disk, path, &len);
    /* An append creates the file: empty and not there are the same to it. */
    bool is_now = len == model->now.len && (len == 0 || memcmp(bytes, model->now.bytes, len) == 0);
    bool is_next =
        len == model->next.len && (len == 0 || memcmp(bytes, model->next.bytes, len) == 0);

    assert_true(is_now || is_next);
}

static void set_content(struct content *content, size_t old_len, struct disk *disk, size_t len)
{
    content->len = old_len + len;
    for (size_t i = old_len; i < content->len; i++)
        content->bytes[i] = (unsigned char)disk_random(disk);
}

enum step { ENTER, WRITE, APPEND, RESET, STEP_KINDS };

static enum hf_status run_step(struct disk *disk, enum step step, struct model *model,
                               uint64_t token, struct hf_error *err)
{
    struct hf_fence_pass pass = {.size = sizeof pass, .token = token, .issuer = "file:x"};
    size_t room = CONTENT_MAX - model->now.len;
    size_t len = 1 + disk_random(disk) % (room < 1500 ? room : 1500);

    model->next = model->now;
    switch (step) {
    case WRITE:
        set_content(&model->next, 0, disk, len);
        return hf__fence_write(
            &disk->io, path, &pass,
            &(struct hf__fence_source){.data = model->next.bytes, .len = model->next.len, .fd = -1},
            err);
    case APPEND:
        set_content(&model->next, model->now.len, disk, len);
        return hf__fence_append(&disk->io, path, &pass, model->next.bytes + model->now.len, len,
                                err);
    case RESET:
        return hf__fence_reset(&disk->io, path, token, "file:x", "a test", err);
    case ENTER:
    case STEP_KINDS:
        break;
    }
    return hf__fence_enter(&disk->io, path, &pass, err);
}

static uint64_t read_mark(struct disk *disk)
{
    size_t len;
    const unsigned char *slots = disk_read(disk, ".data.fence", &len);
    struct hf__fence_record record;
    bool unsettled;

    if (slots == NULL)
        return 0;
    if (len > HF__FENCE_SLOTS * HF__FENCE_SLOT_SIZE)
        len = HF__FENCE_SLOTS * HF__FENCE_SLOT_SIZE;
    assert_true(hf__fence_record_newest((const char *)slots, len, &record, &unsettled));
    return record.mark.token;
}

/* A life of several steps, each cut at a random call or not at all. */
static void live(uint64_t seed, bool no_tmpfile, struct disk *disk, struct model *model)
{
    struct hf_error err;

    disk_init(disk, seed);
    disk->no_tmpfile = no_tmpfile;
    memset(model, 0, sizeof *model);
    for (int i = 0; i < STEPS; i++) {
        enum step step = (enum step)(disk_random(disk) % STEP_KINDS);
        uint64_t token = model->token + disk_random(disk) % 3;
        enum hf_status status;

        token = token == 0 ? 1 : token;
        disk->calls = 0;
        disk->cut_at = (int)(disk_random(disk) % CUTS_MAX);
        status = run_step(disk, step, model, token, &err);
        if (status == HF_OK) {
            model->token = token;
            model->now = model->next;
        } else {
            assert_false(disk->powered); /* nothing else may fail */
        }
        if (!disk->powered || disk_random(disk) % 4 == 0) {
            uint64_t mark;
            size_t len;
            const unsigned char *bytes;

            disk_reboot(disk);
            mark = read_mark(disk);
            assert_true(mark >= model->token);
            model->token = mark;
            if (mark == 0)
                continue;
            /* Entering takes back what is half done. */
            disk->cut_at = 0;
            assert_int_equal(run_step(disk, ENTER, &(struct model){.token = 0}, mark, &err), HF_OK);
            check_content(disk, model);
            bytes = disk_read(disk, path, &len);

            model->now.len = len;
            if (bytes != NULL)
                memcpy(model->now.bytes, bytes, len);
        }
    }
}

static void survives(void **state)
{
    struct disk *disk = malloc(sizeof *disk);
    struct model *model = malloc(sizeof *model);

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS * 100; seed++)
        live(seed, seed % 5 == 0, disk, model);
    free(model);
    free(disk);
}

/* Every single call of every kind of step, first on a fresh file and then on an old one. */
static void every_call(void **state)
{
    struct disk *disk = malloc(sizeof *disk);
    struct model *model = malloc(sizeof *model);
    struct hf_error err;

    (void)state;
    for (int kind = 0; kind < STEP_KINDS * 2; kind++)
        for (int cut = 1;; cut++) {
            enum hf_status status = HF_OK;

            for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                uint64_t mark;

                disk_init(disk, seed * 977 + (uint64_t)cut);
                memset(model, 0, sizeof *model);
                if (kind >= STEP_KINDS) {
                    assert_int_equal(run_step(disk, WRITE, model, 7, &err), HF_OK);
                    model->now = model->next;
                    assert_int_equal(run_step(disk, APPEND, model, 7, &err), HF_OK);
                    model->now = model->next;
                    model->token = 7;
                }
                disk->calls = 0;
                disk->cut_at = cut;
                status = run_step(disk, (enum step)(kind % STEP_KINDS), model, 9, &err);
                disk_reboot(disk);
                mark = read_mark(disk);
                assert_true(mark == model->token || mark == 9 || (mark == 0 && kind < STEP_KINDS));
                if (status == HF_OK)
                    assert_int_equal(mark, 9);
                if (mark > 0)
                    assert_int_equal(run_step(disk, ENTER, &(struct model){.token = 0}, mark, &err),
                                     HF_OK);
                check_content(disk, model);
            }
            if (status == HF_OK)
                break;
            assert_true(cut < 200);
        }
    free(model);
    free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call),
        cmocka_unit_test(survives),
    };

    return cmocka_run_group_tests_name("fence power", tests, NULL, NULL);
}
