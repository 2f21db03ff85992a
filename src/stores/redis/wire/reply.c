/* reply.c - a tree of replies on top of hiredis' reader. */
#include "stores/redis/wire/reply.h"

#include <errno.h>
#include <hiredis/read.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rd_reader {
    redisReader *hiredis;
    size_t fed;   /* bytes of the reply under way */
    size_t items; /* of the reply under way */
    char fault[160];
};

static void *make_string(const redisReadTask *task, char *text, size_t len);
static void *make_array(const redisReadTask *task, int count);
static void *make_integer(const redisReadTask *task, long long value);
static void *make_nil(const redisReadTask *task);
static void free_object(void *object);

static redisReplyObjectFunctions makers = {make_string, make_array, make_integer, make_nil,
                                           free_object};

struct rd_reader *rd_reader_open(void)
{
    struct rd_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL)
        return NULL;
    reader->hiredis = redisReaderCreateWithFunctions(&makers);
    if (reader->hiredis == NULL) {
        free(reader);
        return NULL;
    }
    reader->hiredis->privdata = reader;
    return reader;
}

void rd_reader_close(struct rd_reader *reader)
{
    if (reader == NULL)
        return;
    redisReaderFree(reader->hiredis);
    free(reader);
}

static bool fault(struct rd_reader *reader, const char *text)
{
    if (reader->fault[0] == '\0')
        (void)snprintf(reader->fault, sizeof reader->fault, "%s", text);
    return false;
}

bool rd_reader_feed(struct rd_reader *reader, const char *data, size_t len)
{
    if (reader->fault[0] != '\0')
        return false;
    reader->fed += len;
    if (reader->fed > RD_REPLY_MAX_BYTES)
        return fault(reader, "the answer is too long");
    if (redisReaderFeed(reader->hiredis, data, len) != REDIS_OK)
        return fault(reader, reader->hiredis->errstr);
    return true;
}

bool rd_reader_next(struct rd_reader *reader, struct rd_reply **out)
{
    void *reply = NULL;

    *out = NULL;
    if (reader->fault[0] != '\0')
        return false;
    if (redisReaderGetReply(reader->hiredis, &reply) != REDIS_OK)
        return fault(reader, reader->hiredis->errstr);
    if (reply != NULL) {
        reader->fed = reader->hiredis->len - reader->hiredis->pos;
        reader->items = 0;
        *out = reply;
    }
    return true;
}

const char *rd_reader_fault(const struct rd_reader *reader)
{
    return reader->fault;
}

bool rd_reader_pending(const struct rd_reader *reader)
{
    return reader->fed > 0;
}

void rd_reply_free(struct rd_reply *reply)
{
    if (reply == NULL)
        return;
    /* Depth is limited by the reader, so the recursion is. */
    for (size_t i = 0; reply->items != NULL && i < reply->len; i++)
        rd_reply_free(reply->items[i]);
    free(reply->items);
    free(reply->text);
    free(reply);
}

const struct rd_reply *rd_reply_at(const struct rd_reply *reply, size_t i)
{
    static const struct rd_reply none = {.type = RD_REPLY_NIL};

    if (reply->type != RD_REPLY_ARRAY || i >= reply->len || reply->items[i] == NULL)
        return &none;
    return reply->items[i];
}

const char *rd_reply_text(const struct rd_reply *reply)
{
    return reply->type == RD_REPLY_STRING || reply->type == RD_REPLY_STATUS ? reply->text : "";
}

bool rd_reply_is(const struct rd_reply *reply, const char *word)
{
    if (reply->type == RD_REPLY_ARRAY)
        reply = rd_reply_at(reply, 0);
    return strcmp(rd_reply_text(reply), word) == 0;
}

int64_t rd_reply_number(const struct rd_reply *reply, int64_t otherwise)
{
    const char *text = rd_reply_text(reply);
    char *end;
    long long value;

    if (reply->type == RD_REPLY_INTEGER)
        return reply->integer;
    if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
        return otherwise;
    errno = 0;
    value = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0 ? value : otherwise;
}

/* Makes a reply and hangs it into its parent. */
static struct rd_reply *make(const redisReadTask *task, enum rd_reply_type type)
{
    struct rd_reader *reader = task->privdata;
    struct rd_reply *reply;

    if (++reader->items > RD_REPLY_MAX_ITEMS) {
        (void)fault(reader, "the answer has too many items");
        return NULL;
    }
    reply = calloc(1, sizeof *reply);
    if (reply == NULL) {
        (void)fault(reader, "out of memory");
        return NULL;
    }
    reply->type = type;
    if (task->parent != NULL) {
        struct rd_reply *parent = task->parent->obj;

        parent->items[task->idx] = reply;
    }
    return reply;
}

static void *make_string(const redisReadTask *task, char *text, size_t len)
{
    char *copy = malloc(len + 1);
    struct rd_reply *reply;

    if (copy == NULL)
        return NULL;
    reply = make(task, task->type == REDIS_REPLY_ERROR    ? RD_REPLY_ERROR
                       : task->type == REDIS_REPLY_STATUS ? RD_REPLY_STATUS
                                                          : RD_REPLY_STRING);
    if (reply == NULL) {
        free(copy);
        return NULL;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    reply->text = copy;
    reply->len = len;
    return reply;
}

static void *make_array(const redisReadTask *task, int count)
{
    struct rd_reader *reader = task->privdata;
    struct rd_reply **items;
    struct rd_reply *reply;

    /* The count is the server's word, to be believed only as far as we would go anyway. */
    if (count < 0 || count > RD_REPLY_MAX_ITEMS) {
        (void)fault(reader, "the answer has too many items");
        return NULL;
    }
    items = calloc((size_t)count + 1, sizeof *items);
    reply = items != NULL ? make(task, RD_REPLY_ARRAY) : NULL;
    if (reply == NULL) {
        free(items);
        return NULL;
    }
    reply->items = items;
    reply->len = (size_t)count;
    return reply;
}

static void *make_integer(const redisReadTask *task, long long value)
{
    struct rd_reply *reply = make(task, RD_REPLY_INTEGER);

    if (reply != NULL)
        reply->integer = value;
    return reply;
}

static void *make_nil(const redisReadTask *task)
{
    return make(task, RD_REPLY_NIL);
}

static void free_object(void *object)
{
    rd_reply_free(object);
}
