/* fuzz_file_record.c - a record's file with anything in it. Built by fuzz.sh.
 *
 * Once as it comes, and once with magic, version and sum made to fit, so that the lengths are
 * believed as far as they go. The parser may refuse, and must read nothing that is not there; what
 * it takes must be within the limits. */
#include "base/base.h"
#include "stores/file/record_file.h"

#include <stdlib.h>
#include <string.h>

#define SUM_SEED 0x72656373

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const char *bytes, size_t size)
{
    struct record_copy copy = {.found = false};

    if (!hf__record_parse(bytes, size, &copy))
        return;
    if (copy.value + copy.head.value_len != bytes + size || copy.name[0] == '\0' ||
        copy.key[0] == '\0' || copy.head.value_len > HF_RECORD_VALUE_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct record_head head;
    /* A block of its own, so that reading past its end is noticed. */
    char *bytes = malloc(size);

    if (bytes == NULL)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    parse(bytes, size);
    if (size >= sizeof head) {
        memcpy(&head, bytes, sizeof head);
        memcpy(head.magic, "hfrecord", sizeof head.magic);
        head.version = 1;
        memcpy(bytes, &head, sizeof head);
        head.sum = hf__hash64(bytes + 8, size - 8, SUM_SEED);
        memcpy(bytes, &head, sizeof head);
        parse(bytes, size);
    }
    free(bytes);
    return 0;
}
