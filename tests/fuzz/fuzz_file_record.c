/* fuzz_file_record.c - a record's file with anything in it, one record or two. Built by fuzz.sh.
 *
 * Once as it comes, and once with magic, version and sums made to fit, so that the lengths are
 * believed as far as they go. The parser may refuse, and must read nothing that is not there; what
 * it takes must be within the limits. */
#include "base/base.h"
#include "stores/file/record_file.h"

#include <stdlib.h>
#include <string.h>

#define SUM_SEED 0x72656373

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const char *bytes, size_t size, const char *path)
{
    struct record_copy copy = {.found = false};

    if (!hf__record_parse(bytes, size, path, &copy))
        return;
    if (copy.value < bytes || copy.value + copy.head.value_len > bytes + size ||
        copy.name[0] == '\0' || copy.key[0] == '\0' || copy.head.value_len > HF_RECORD_VALUE_MAX)
        abort();
}

/* The path of a record that begins there, if its lengths are any good. */
static void path_of(char out[RECORD_PATH_SIZE], const char *bytes, size_t size)
{
    char name[HF_NAME_MAX + 1] = "job", key[HF_RECORD_KEY_MAX + 1] = "k";
    struct record_head head = {.name_len = 0};

    if (size >= sizeof head)
        memcpy(&head, bytes, sizeof head);
    if (head.name_len <= HF_NAME_MAX && head.key_len <= HF_RECORD_KEY_MAX &&
        size >= sizeof head + head.name_len + head.key_len) {
        (void)snprintf(name, sizeof name, "%.*s", (int)head.name_len, bytes + sizeof head);
        (void)snprintf(key, sizeof key, "%.*s", (int)head.key_len,
                       bytes + sizeof head + head.name_len);
    }
    hf__record_path(out, name, key);
}

/* Makes a record out of those bytes, or of as many as it claims. Returns how many. */
static size_t fit(char *bytes, size_t size)
{
    struct record_head head;
    uint64_t says;

    if (size < sizeof head)
        return size;
    memcpy(&head, bytes, sizeof head);
    says = (uint64_t)sizeof head + head.name_len + head.key_len + head.value_len;
    if (says < size)
        size = (size_t)says;
    memcpy(head.magic, "hfrecord", sizeof head.magic);
    head.version = 1;
    memcpy(bytes, &head, sizeof head);
    head.sum = hf__hash64(bytes + 8, size - 8, SUM_SEED);
    memcpy(bytes, &head, sizeof head);
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char paths[2][RECORD_PATH_SIZE];
    /* A block of its own, so that reading past its end is noticed. */
    char *bytes = malloc(size);
    size_t first;

    if (bytes == NULL)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    path_of(paths[0], bytes, size);
    parse(bytes, size, paths[0]);
    first = fit(bytes, size);
    path_of(paths[1], bytes + first, size - first);
    (void)fit(bytes + first, size - first);
    parse(bytes, size, paths[0]);
    parse(bytes, size, paths[1]);
    free(bytes);
    return 0;
}
