/* fuzz_redis_reply.c - anything a server may send, in pieces. Built by fuzz.sh. */
#include "stores/redis/wire/reply.h"
#include "stores/redis/errors.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads everything that a caller would. */
static size_t walk(const struct rd_reply *reply)
{
    size_t sum = strlen(rd_reply_text(reply)) + (size_t)rd_reply_number(reply, 1);

    if (reply->type == RD_REPLY_ERROR) {
        struct hf__address address;
        struct hf_error err;
        unsigned slot;

        sum +=
            (size_t)rd_verdict_fail(reply->text, "lock", "redis://host", &err) + strlen(err.text);
        sum += rd_verdict_address(reply->text, &address, &slot) ? strlen(address.host) + slot : 0;
    }
    for (size_t i = 0; reply->type == RD_REPLY_ARRAY && i < reply->len; i++)
        sum += walk(rd_reply_at(reply, i));
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rd_reader *reader = rd_reader_open();
    size_t piece = size > 0 ? data[0] % 64 + 1u : 1;

    for (size_t at = 1; reader != NULL && at < size; at += piece) {
        struct rd_reply *reply;

        if (!rd_reader_feed(reader, (const char *)data + at, size - at < piece ? size - at : piece))
            break;
        while (rd_reader_next(reader, &reply) && reply != NULL) {
            (void)walk(reply);
            rd_reply_free(reply);
        }
    }
    rd_reader_close(reader);
    return 0;
}
