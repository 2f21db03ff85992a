/* reply.h - what a Redis server answers, and the parser that is not afraid of it.
 *
 * hiredis' reader does the parsing; the tree is ours, with a limit on everything a server can
 * choose: depth, number of items, bytes. */
#ifndef HF_STORES_REDIS_WIRE_REPLY_H
#define HF_STORES_REDIS_WIRE_REPLY_H

#include <holdfast.h>

enum {
    RD_REPLY_MAX_BYTES = 4 << 20, /* of one reply, as it comes over the wire */
    RD_REPLY_MAX_ITEMS = 1 << 16, /* in one reply, nested ones included */
    RD_REPLY_MAX_DEPTH = 7        /* arrays in arrays; what hiredis' reader can do */
};

enum rd_reply_type {
    RD_REPLY_STRING,
    RD_REPLY_STATUS,
    RD_REPLY_ERROR,
    RD_REPLY_INTEGER,
    RD_REPLY_NIL,
    RD_REPLY_ARRAY
};

struct rd_reply {
    enum rd_reply_type type;
    long long integer;
    size_t len; /* of text; or how many items */
    char *text; /* STRING, STATUS, ERROR: ends with a NUL that len does not count */
    struct rd_reply **items;
};

struct rd_reader;

struct rd_reader *rd_reader_open(void); /* NULL: out of memory */
void rd_reader_close(struct rd_reader *reader);

/* Takes len bytes from the wire. False: too much, malformed or out of memory; the reader is no use
 * any more and rd_reader_fault says why. */
bool rd_reader_feed(struct rd_reader *reader, const char *data, size_t len);
/* The next complete reply, or NULL in *out if more bytes are needed. The caller frees it. */
bool rd_reader_next(struct rd_reader *reader, struct rd_reply **out);
const char *rd_reader_fault(const struct rd_reader *reader);
/* True if there are bytes that no reply has used up. */
bool rd_reader_pending(const struct rd_reader *reader);

void rd_reply_free(struct rd_reply *reply); /* takes NULL */

/* Item i of an array, or a reply of type NIL if there is none. Never NULL. */
const struct rd_reply *rd_reply_at(const struct rd_reply *reply, size_t i);
/* The text of a STRING or STATUS, "" for everything else. */
const char *rd_reply_text(const struct rd_reply *reply);
/* Is it that word, or an array that starts with it? */
bool rd_reply_is(const struct rd_reply *reply, const char *word);
/* The number of an INTEGER or of decimal digits in a STRING; `otherwise` for everything else. */
int64_t rd_reply_number(const struct rd_reply *reply, int64_t otherwise);

#endif /* HF_STORES_REDIS_WIRE_REPLY_H */
