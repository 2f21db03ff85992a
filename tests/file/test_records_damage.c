/* test_records_damage.c - files of records that are not what was written: each is refused in one
 * sentence that names it, and the rest of the store does not mind. */
#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE "a value that is long enough to be damaged in the middle"

struct scene {
    const char *dir;
    struct hf_store_base *base;
    struct kit_hold hold;
    uint64_t number;
    char path[800];  /* of the record that suffers */
    char bytes[400]; /* and what was in it */
    size_t len;
};

static void begin(struct scene *scene)
{
    struct hf_error err = {0};
    int fd;
    ssize_t got;

    memset(scene, 0, sizeof *scene);
    kit_world = (struct kit_world){.no_fsync = true};
    scene->dir = kit_dir();
    scene->base = kit_open(scene->dir);
    kit_expect(kit_take(scene->base, "job", 600000, 0, &scene->hold, &err), HF_OK, &err);
    scene->number = 10;
    for (int i = 0; i < 2; i++)
        kit_expect(put_record(scene->base, &scene->hold,
                              (struct put){.key = i == 0 ? "bad" : "good",
                                           .value = VALUE,
                                           .number = (uint64_t)i + 1},
                              &err),
                   HF_OK, &err);
    (void)snprintf(scene->path, sizeof scene->path, "%s", record_file(scene->dir, "job", "bad"));
    fd = open(scene->path, O_RDONLY | O_CLOEXEC);
    got = read(fd, scene->bytes, sizeof scene->bytes);
    assert_true(got > (ssize_t)sizeof(struct record_head) && got < (ssize_t)sizeof scene->bytes);
    scene->len = (size_t)got;
    (void)close(fd);
}

static void end(struct scene *scene)
{
    kit_close(scene->base);
    kit_remove(scene->dir);
}

static void write_bytes(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    (void)close(fd);
}

/* Refused, by name; all else goes on. */
static void check_refused(struct scene *scene, enum hf_status want, const char *what)
{
    struct hf_error err = {0};
    struct kit_hold other;
    char found[64];
    long count;

    kit_expect(get_record(scene->base, "job", "bad", found, &err), want, &err);
    assert_string_equal(found, "nothing");
    if (strstr(err.text, strrchr(scene->path, '/')) == NULL || strstr(err.text, what) == NULL)
        fail_msg("the text does not say what to do: %s", err.text);
    assert_true(strlen(err.text) < HF_ERROR_TEXT_SIZE - 1);
    /* Nobody knows what it would replace. */
    kit_expect(put_record(scene->base, &scene->hold,
                          (struct put){.key = "bad", .value = "x", .number = scene->number++},
                          &err),
               want, &err);
    assert_int_equal(record_files(scene->dir, "job", "."), 0);
    expect_record(scene->base, "job", "good", VALUE);
    kit_expect(put_record(scene->base, &scene->hold,
                          (struct put){.key = "good", .value = VALUE, .number = scene->number++},
                          &err),
               HF_OK, &err);
    /* The listing shows the others first. */
    kit_expect(list_records(scene->base, "job", "", &count, &err), want, &err);
    assert_int_equal(count, 1);
    kit_expect(kit_take(scene->base, "other", 60000, 0, &other, &err), HF_OK, &err);
    kit_expect(put_record(scene->base, &other,
                          (struct put){.key = "bad", .value = "fine", .number = 1}, &err),
               HF_OK, &err);
    expect_record(scene->base, "other", "bad", "fine");
    kit_expect(kit_drop(scene->base, &other, &err), HF_OK, &err);
    kit_expect(kit_renew(scene->base, &scene->hold, &err), HF_OK, &err);
}

/* As the sentence says. */
static void check_removable(struct scene *scene)
{
    struct hf_error err = {0};

    assert_true(unlink(scene->path) == 0 || rmdir(scene->path) == 0);
    expect_record(scene->base, "job", "bad", NULL);
    kit_expect(put_record(scene->base, &scene->hold,
                          (struct put){.key = "bad", .value = VALUE, .number = scene->number++},
                          &err),
               HF_OK, &err);
    expect_record(scene->base, "job", "bad", VALUE);
}

static void every_bit_counts(void **state)
{
    struct scene scene;
    struct hf_error err = {0};
    char found[64];

    (void)state;
    begin(&scene);
    for (size_t i = 0; i < scene.len; i++) {
        scene.bytes[i] ^= (char)(1 << i % 8);
        write_bytes(scene.path, scene.bytes, scene.len);
        if (get_record(scene.base, "job", "bad", found, &err) != HF_CORRUPT)
            fail_msg("byte %zu of %zu was changed, and nobody noticed", i, scene.len);
        scene.bytes[i] ^= (char)(1 << i % 8);
    }
    check_refused(&scene, HF_CORRUPT, "remove that file");
    write_bytes(scene.path, scene.bytes, scene.len);
    expect_record(scene.base, "job", "bad", VALUE);
    end(&scene);
}

static void every_byte_is_needed(void **state)
{
    struct scene scene;
    struct hf_error err = {0};
    char found[64];

    (void)state;
    begin(&scene);
    for (size_t len = 0; len < scene.len; len++) {
        write_bytes(scene.path, scene.bytes, len);
        if (get_record(scene.base, "job", "bad", found, &err) != HF_CORRUPT)
            fail_msg("cut at %zu of %zu, and nobody noticed", len, scene.len);
    }
    write_bytes(scene.path, scene.bytes, scene.len + 1); /* and no more */
    check_refused(&scene, HF_CORRUPT, "remove that file");
    check_removable(&scene);
    end(&scene);
}

/* A file that claims lengths of its own, with a sum that fits. */
static void lengths_are_checked(void **state)
{
    static const uint32_t lengths[] = {0, 1, 0x7fffffff, 0xffffffff, 65537, 201, 65};

    (void)state;
    for (size_t i = 0; i < 3 * (sizeof lengths / sizeof *lengths); i++) {
        struct record_copy copy;
        struct record_head head = {
            .version = 1, .name_len = 3, .key_len = 1, .value_len = 2, .token = 1, .number = 1};
        char bytes[sizeof head + 6] = {0}, path[RECORD_PATH_SIZE];
        uint32_t *which[] = {&head.name_len, &head.key_len, &head.value_len};

        hf__record_path(path, "job", "k");
        memcpy(head.magic, "hfrecord", 8);
        *which[i % 3] = lengths[i / 3];
        memcpy(bytes, &head, sizeof head);
        memcpy(bytes + sizeof head, "jobkxy", 6);
        head.sum = hf__hash64(bytes + 8, sizeof bytes - 8, 0x72656373);
        memcpy(bytes, &head, sizeof head);
        if (head.name_len == 3 && head.key_len == 1 && head.value_len == 2)
            assert_true(hf__record_parse(bytes, sizeof bytes, path, &copy)); /* the sum does fit */
        else
            assert_false(hf__record_parse(bytes, sizeof bytes, path, &copy));
    }
}

/* A sound record in another's place: a backup that was put back wrongly, or a link. */
static void another_record(void **state)
{
    struct scene scene;

    (void)state;
    begin(&scene);
    assert_int_equal(unlink(scene.path), 0);
    assert_int_equal(link(record_file(scene.dir, "job", "good"), scene.path), 0);
    check_refused(&scene, HF_CORRUPT, "remove that file");
    check_removable(&scene);
    end(&scene);
}

static void something_else(void **state)
{
    struct scene scene;

    (void)state;
    begin(&scene);
    assert_int_equal(truncate(scene.path, (off_t)1 << 40), 0); /* of a size that cannot be read */
    check_refused(&scene, HF_CORRUPT, "remove that file");
    assert_int_equal(unlink(scene.path), 0);
    assert_int_equal(mkfifo(scene.path, 0600), 0); /* which must not be waited for */
    check_refused(&scene, HF_DENIED, "owner and mode");
    assert_int_equal(unlink(scene.path), 0);
    assert_int_equal(mkdir(scene.path, 0700), 0);
    check_refused(&scene, HF_DENIED, "owner and mode");
    assert_int_equal(rmdir(scene.path), 0);
    assert_int_equal(symlink(record_file(scene.dir, "job", "good"), scene.path), 0);
    check_refused(&scene, HF_DENIED, "cannot open");
    assert_int_equal(unlink(scene.path), 0);
    write_bytes(scene.path, scene.bytes, scene.len);
    assert_int_equal(chmod(scene.path, 0666), 0); /* whoever wanted could have written that */
    check_refused(&scene, HF_DENIED, "owner and mode");
    check_removable(&scene);
    end(&scene);
}

/* What the sweep does not understand it leaves alone. */
static void nothing_damaged_is_swept(void **state)
{
    struct scene scene;
    struct hf_error err = {0};
    char found[64];

    (void)state;
    begin(&scene);
    write_bytes(scene.path, "x", 1);
    for (int i = 0; i < 200; i++)
        kit_expect(put_record(scene.base, &scene.hold,
                              (struct put){.key = "good", .value = VALUE, .number = scene.number++},
                              &err),
                   HF_OK, &err);
    kit_expect(get_record(scene.base, "job", "bad", found, &err), HF_CORRUPT, &err);
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_counts),    cmocka_unit_test(every_byte_is_needed),
        cmocka_unit_test(lengths_are_checked), cmocka_unit_test(another_record),
        cmocka_unit_test(something_else),      cmocka_unit_test(nothing_damaged_is_swept)};

    return KIT_RUN(tests);
}
