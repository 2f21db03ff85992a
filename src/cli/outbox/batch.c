/* batch.c - the messages that were fetched. */
#include "cli/outbox/relay.h"

#include <stdlib.h>
#include <string.h>

bool relay_batch_init(struct relay_batch *batch, size_t capacity)
{
    *batch = (struct relay_batch){.capacity = capacity, .table_size = 2};
    while (batch->table_size < 2 * capacity)
        batch->table_size *= 2;
    batch->items = calloc(capacity, sizeof *batch->items);
    batch->messages = calloc(capacity, sizeof *batch->messages);
    batch->table = calloc(batch->table_size, sizeof *batch->table);
    return batch->items != NULL && batch->messages != NULL && batch->table != NULL;
}

void relay_batch_release(struct relay_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        free(batch->messages[i].block);
    free(batch->items);
    free(batch->messages);
    free(batch->table);
}

static bool is_carried(const struct relay_batch *batch, uint64_t id)
{
    for (size_t i = 0; i < batch->carried; i++)
        if (batch->items[i].id == id)
            return true;
    return false;
}

static uint64_t number(const struct hf__db_value *value)
{
    return value->bytes != NULL ? strtoull(value->bytes, NULL, 10) : 0;
}

/* Copies a value, with a NUL behind it, to *at, and moves that on. */
static const char *keep(char **at, const struct hf__db_value *value)
{
    const char *kept = *at;

    if (value->bytes != NULL)
        memcpy(*at, value->bytes, value->len);
    (*at)[value->bytes != NULL ? value->len : 0] = '\0';
    *at += (value->bytes != NULL ? value->len : 0) + 1;
    return kept;
}

/* All texts of a message in one block. */
static bool copy_texts(struct relay_message *message, const struct hf__db_value *values)
{
    struct hf__sender_message *sent = &message->sent;
    size_t size = 0;
    char *at;

    for (int i = 0; i < HF__OUTBOX_COLUMNS; i++)
        size += (values[i].bytes != NULL ? values[i].len : 0) + 1;
    message->block = malloc(size);
    if (message->block == NULL)
        return false;
    at = message->block;
    sent->uid = keep(&at, &values[HF__OUTBOX_UID]);
    sent->topic = keep(&at, &values[HF__OUTBOX_TOPIC]);
    sent->key = keep(&at, &values[HF__OUTBOX_KEY]);
    sent->headers = keep(&at, &values[HF__OUTBOX_HEADERS]);
    sent->created = keep(&at, &values[HF__OUTBOX_CREATED]);
    sent->payload_len =
        values[HF__OUTBOX_PAYLOAD].bytes != NULL ? values[HF__OUTBOX_PAYLOAD].len : 0;
    sent->payload = keep(&at, &values[HF__OUTBOX_PAYLOAD]);
    return true;
}

bool relay_batch_add(const struct hf__db_value *values, void *data)
{
    struct relay_batch *batch = data;
    struct hf__outbox_item *item = &batch->items[batch->count];
    struct relay_message *message = &batch->messages[batch->count];
    uint64_t id = number(&values[HF__OUTBOX_ID]);

    if (is_carried(batch, id) || batch->count == batch->capacity)
        return true;
    *message = (struct relay_message){.asked_ms = -1};
    if (!copy_texts(message, values))
        return false;
    *item = (struct hf__outbox_item){.key = message->sent.key,
                                     .id = id,
                                     .blocker = number(&values[HF__OUTBOX_BLOCKER]),
                                     .attempts = (unsigned)number(&values[HF__OUTBOX_ATTEMPTS])};
    message->sent.attempt = item->attempts + 1;
    batch->blocked += item->blocker != 0;
    batch->count++;
    return true;
}

void relay_batch_link(struct relay_batch *batch)
{
    hf__outbox_link(batch->items, batch->count, batch->table, batch->table_size);
}

void relay_batch_shrink(struct relay_batch *batch)
{
    size_t kept = 0;

    for (size_t i = 0; i < batch->count; i++) {
        if (batch->items[i].step != HF__OUTBOX_SENT) {
            free(batch->messages[i].block);
            continue;
        }
        batch->items[kept] = batch->items[i];
        batch->messages[kept++] = batch->messages[i];
    }
    batch->count = batch->carried = kept;
    batch->answered = batch->blocked = 0;
    relay_batch_link(batch);
}
