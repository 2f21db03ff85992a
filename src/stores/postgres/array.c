/* array.c - a parameter that is an array. */
#include "stores/postgres/array.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_SIZE = 5 * 4 };

static void put(struct pg_array *array, uint64_t number, size_t size)
{
    while (size-- > 0)
        array->bytes[array->len++] = (unsigned char)(number >> (8 * size));
}

bool pg_array_init(struct pg_array *array, uint32_t type, size_t count, size_t element_max)
{
    *array = (struct pg_array){.bytes = malloc(HEAD_SIZE + count * (4 + element_max))};
    if (array->bytes == NULL)
        return false;
    put(array, 1, 4);
    put(array, 0, 4);
    put(array, type, 4);
    put(array, count, 4);
    put(array, 1, 4);
    return true;
}

void pg_array_release(struct pg_array *array)
{
    if (array->bytes != NULL) /* it may have owners in it */
        explicit_bzero(array->bytes, array->len);
    free(array->bytes);
    *array = (struct pg_array){0};
}

void pg_array_bytes(struct pg_array *array, const void *bytes, size_t len)
{
    put(array, len, 4);
    memcpy(array->bytes + array->len, bytes, len);
    array->len += len;
}

void pg_array_number(struct pg_array *array, uint64_t number, size_t size)
{
    put(array, size, 4);
    put(array, number, size);
}

bool pg_array_owner(struct pg_array *array, const char *owner)
{
    unsigned char raw[HF_OWNER_LEN / 2];

    if (!hf__hex_decode(raw, sizeof raw, owner))
        return false;
    pg_array_bytes(array, raw, sizeof raw);
    explicit_bzero(raw, sizeof raw);
    return true;
}
