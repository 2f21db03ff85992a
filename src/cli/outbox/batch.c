/* batch.c - the messages that were fetched. */
#include "cli/outbox/relay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool outbox_batch_init(struct outbox_batch *batch, size_t capacity)
{
    *batch = (struct outbox_batch){.capacity = capacity, .table_size = 2};
    while (batch->table_size < 2 * capacity)
        batch->table_size *= 2;
    batch->items = calloc(capacity, sizeof *batch->items);
    batch->messages = calloc(capacity, sizeof *batch->messages);
    batch->table = calloc(batch->table_size, sizeof *batch->table);
    return batch->items != NULL && batch->messages != NULL && batch->table != NULL;
}

static void forget(struct outbox_message *message)
{
    free(message->block);
    free(message->body);
}

void outbox_batch_release(struct outbox_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        forget(&batch->messages[i]);
    free(batch->items);
    free(batch->messages);
    free(batch->table);
}

/* The one among the first `count` that has this id, or NULL. */
static struct hf__outbox_item *find(const struct outbox_batch *batch, size_t count, uint64_t id)
{
    for (size_t i = count; i > 0; i--)
        if (batch->items[i - 1].id == id)
            return &batch->items[i - 1];
    return NULL;
}

/* By its uid, too: after a restore an id may be another message's. */
static bool is_carried(const struct outbox_batch *batch, uint64_t id, const char *uid)
{
    const struct hf__outbox_item *item = find(batch, batch->carried, id);

    return item != NULL && strcmp(batch->messages[item - batch->items].sent.uid, uid) == 0;
}

/* Whether the blocker is here; if so, it counts as failed, because what is parked behind it comes
 * before what follows here. One that is carried may have been marked since, by a relay that lost
 * its lock. After a restore the id may be that of a message with another key, which is not meant.
 */
static bool is_behind(const struct outbox_batch *batch, uint64_t blocker, const char *key)
{
    struct hf__outbox_item *item = find(batch, batch->count, blocker);

    if (item == NULL || strcmp(item->key, key) != 0)
        return false;
    if (item->attempts == 0)
        item->attempts = 1;
    return true;
}

static uint64_t number(const struct hf__db_text *value)
{
    return value->data != NULL ? strtoull(value->data, NULL, 10) : 0;
}

/* Copies a value, with a NUL behind it, to *at, and moves that on. */
static const char *keep(char **at, const struct hf__db_text *value)
{
    const char *kept = *at;

    if (value->data != NULL)
        memcpy(*at, value->data, value->len);
    (*at)[value->data != NULL ? value->len : 0] = '\0';
    *at += (value->data != NULL ? value->len : 0) + 1;
    return kept;
}

/* All that is known before the second statement, in one block. */
static bool copy_texts(struct outbox_message *message, const struct hf__db_text *values)
{
    struct hf__sender_message *sent = &message->sent;
    size_t size = 0;
    char *at;

    for (int i = HF__OUTBOX_UID; i <= HF__OUTBOX_CREATED; i++)
        size += (values[i].data != NULL ? values[i].len : 0) + 1;
    message->block = malloc(size);
    if (message->block == NULL)
        return false;
    at = message->block;
    sent->uid = keep(&at, &values[HF__OUTBOX_UID]);
    sent->topic = keep(&at, &values[HF__OUTBOX_TOPIC]);
    sent->key = keep(&at, &values[HF__OUTBOX_KEY]);
    sent->created = keep(&at, &values[HF__OUTBOX_CREATED]);
    return true;
}

static bool set_body(struct outbox_message *message, const struct hf__db_text *payload,
                     const struct hf__db_text *headers)
{
    char *at;

    message->body = at = malloc(payload->len + headers->len + 2);
    if (at == NULL)
        return false;
    message->sent.payload_len = payload->data != NULL ? payload->len : 0;
    message->sent.payload = keep(&at, payload);
    message->sent.headers = keep(&at, headers);
    return true;
}

/* What does not fit any more is left for the next fetch; but one is taken, whatever its size. */
bool outbox_batch_add(const struct hf__db_text *values, void *data)
{
    struct outbox_batch *batch = data;
    struct hf__outbox_item *item = &batch->items[batch->count];
    struct outbox_message *message = &batch->messages[batch->count];
    uint64_t id = number(&values[HF__OUTBOX_ID]);
    uint64_t bytes = number(&values[HF__OUTBOX_BYTES]);

    batch->rows++;
    if (is_carried(batch, id, values[HF__OUTBOX_UID].data) || batch->count == batch->capacity ||
        batch->full)
        return true;
    batch->bytes += bytes;
    if (batch->bytes > OUTBOX_FETCH_BYTES && batch->count > batch->carried) {
        batch->full = true;
        return true;
    }
    *message = (struct outbox_message){.asked_ms = -1};
    if (!copy_texts(message, values) ||
        (values[HF__OUTBOX_SMALL_HEADERS].data != NULL &&
         !set_body(message, &values[HF__OUTBOX_SMALL_PAYLOAD], &values[HF__OUTBOX_SMALL_HEADERS])))
        return false;
    *item = (struct hf__outbox_item){.key = message->sent.key,
                                     .id = id,
                                     .blocker = number(&values[HF__OUTBOX_BLOCKER]),
                                     .attempts = (unsigned)number(&values[HF__OUTBOX_ATTEMPTS])};
    /* A blocker that is due is in this batch, and goes first: it has the lower id. */
    if (item->blocker != 0 && is_behind(batch, item->blocker, item->key))
        item->blocker = 0;
    message->sent.attempt = item->attempts + 1;
    batch->blocked += item->blocker != 0;
    batch->count++;
    return true;
}

bool outbox_batch_add_body(const struct hf__db_text *values, void *data)
{
    struct outbox_batch *batch = data;
    uint64_t id = number(&values[HF__OUTBOX_ID]);

    /* Both come in the order of ids. */
    while (batch->body < batch->count && batch->items[batch->body].id != id)
        batch->body++;
    if (batch->body == batch->count)
        return true;
    return set_body(&batch->messages[batch->body++], &values[HF__OUTBOX_PAYLOAD],
                    &values[HF__OUTBOX_HEADERS]);
}

/* One whose body is gone was dropped between the two statements. What was parked behind it is free
 * now, and not here: nothing else of its key is sent in this round, as behind one that had failed.
 */
void outbox_batch_link(struct outbox_batch *batch)
{
    for (size_t i = batch->carried; i < batch->count; i++)
        if (batch->messages[i].body == NULL && batch->items[i].blocker == 0) {
            batch->items[i].step = HF__OUTBOX_DONE;
            batch->items[i].attempts = 1;
        }
    hf__outbox_link(batch->items, batch->count, batch->table, batch->table_size);
}

void outbox_batch_shrink(struct outbox_batch *batch)
{
    size_t kept = 0;

    for (size_t i = 0; i < batch->count; i++) {
        if (batch->items[i].step != HF__OUTBOX_SENT) {
            forget(&batch->messages[i]);
            continue;
        }
        batch->items[kept] = batch->items[i];
        batch->messages[kept++] = batch->messages[i];
    }
    batch->count = kept;
    batch->first = 0;
    batch->answered = batch->blocked = 0;
    outbox_batch_again(batch);
    outbox_batch_link(batch);
}

void outbox_batch_again(struct outbox_batch *batch)
{
    batch->carried = batch->body = batch->count;
    batch->rows = 0;
    batch->bytes = 0;
    batch->full = false;
}

char *outbox_batch_list(const struct outbox_batch *batch, outbox_pick_fn *pick)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    bool any = false;

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < batch->count; i++)
        if (pick(batch, i)) {
            fprintf(out, "%s%" PRIu64, any ? "," : "", batch->items[i].id);
            any = true;
        }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
