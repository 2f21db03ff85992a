/* arrays.c - ids and uids as PostgreSQL itself writes arrays (array_send): reading them as text
 * takes a server a third of a millisecond for 500. */
#include "outbox/outbox.h"

enum { INT8 = 20, UUID = 2950, UUID_BYTES = 16 };

static void put_big_endian(FILE *out, uint64_t number, int bytes)
{
    while (bytes-- > 0)
        (void)fputc((int)(number >> (8 * bytes) & 0xff), out);
}

/* One dimension without NULLs, its type, so many, counted from 1. */
static void put_head(FILE *out, uint32_t type, size_t count)
{
    put_big_endian(out, 1, 4);
    put_big_endian(out, 0, 4);
    put_big_endian(out, type, 4);
    put_big_endian(out, count, 4);
    put_big_endian(out, 1, 4);
}

void hf__outbox_put_ids_head(FILE *out, size_t count)
{
    put_head(out, INT8, count);
}

void hf__outbox_put_ids_next(FILE *out, uint64_t id)
{
    put_big_endian(out, 8, 4);
    put_big_endian(out, id, 8);
}

void hf__outbox_put_uids_head(FILE *out, size_t count)
{
    put_head(out, UUID, count);
}

void hf__outbox_put_uids_next(FILE *out, const char *uid)
{
    unsigned digit[2];
    int have = 0;

    put_big_endian(out, UUID_BYTES, 4);
    for (; *uid != '\0'; uid++) {
        if (*uid == '-')
            continue;
        digit[have++] = (unsigned)(*uid <= '9' ? *uid - '0' : *uid - 'a' + 10);
        if (have == 2)
            (void)fputc((int)(digit[0] << 4 | digit[1]), out);
        have %= 2;
    }
}
