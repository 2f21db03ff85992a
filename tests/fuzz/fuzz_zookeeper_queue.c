/* fuzz_zookeeper_queue.c - whatever names and data the children of a lock and its records may have.
 * The lines of the input are the nodes' names, and each is read as data too. Built by fuzz.sh. */
#include "stores/zookeeper/name.h"
#include "stores/zookeeper/queue.h"
#include "stores/zookeeper/record.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

/* What is written is read again, whatever the label is. */
static void check_data(const char *text)
{
    char data[ZK_DATA_MAX];
    struct zk_said said;

    if (zk_data_parse(text, &said))
        check(said.ttl_ms <= HF_TTL_MAX_MS && said.waited_ms >= 0 &&
              strlen(said.label) <= strlen(text));
    zk_data_make(data, (uint32_t)strlen(text), INT64_MAX, text);
    check(zk_data_parse(data, &said) && said.ttl_ms == strlen(text));
    check(said.waited_ms == INT64_MAX && strncmp(said.label, text, strlen(said.label)) == 0);
}

/* A record that is understood is one that could have been written. A tab stands for the line feed
 * of its head. */
static void check_record(const char *text)
{
    struct Stat stat = {.mtime = 1700000000000};
    size_t len = strlen(text);
    char *copy = malloc(len); /* nothing follows it */
    struct hf_record record;

    check(copy != NULL || len == 0);
    for (size_t i = 0; i < len; i++)
        copy[i] = text[i] == '\t' ? '\n' : text[i];
    if (len > 0 && zk_record_parse(copy, len, &stat, &record))
        check(record.token != 0 && record.until_ms >= 0 && record.value_len <= len &&
              (const char *)record.value + record.value_len == copy + len);
    free(copy);
}

/* A name that is read as a text is how that text is written. */
static void check_name(const char *node)
{
    char text[HF_RECORD_KEY_MAX + 1];
    char again[3 * HF_RECORD_KEY_MAX + 1];

    if (zk_node_text(text, sizeof text, node))
        check(zk_node_name(again, sizeof again, text) && strcmp(again, node) == 0);
}

static void check_line(struct zk_queue *queue, size_t most)
{
    check(queue->count <= most);
    for (size_t i = 0; i < queue->count; i++) {
        struct zk_entry *entry = &queue->at[i];
        char owner[HF_OWNER_LEN + 1] = "";

        check(i == 0 || queue->at[i - 1].sequence <= entry->sequence);
        check(queue->unsure || (entry->sequence >= 0 && entry->sequence < INT32_MAX));
        memcpy(owner, entry->name, HF_OWNER_LEN);
        if (!entry->foreign)
            check(zk_queue_find(queue, owner) <= i);
        entry->czxid = (int64_t)(entry->name[0] & 7); /* some are gone */
    }
    zk_queue_sort_czxid(queue);
    for (size_t i = 0; i < queue->count; i++)
        check(queue->at[i].czxid != 0 && (i == 0 || queue->at[i - 1].czxid <= queue->at[i].czxid));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char *names[NAMES_MAX];
    struct zk_names all = {.at = names};
    struct zk_queue queue;
    char *rest = text;

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    while (all.count < NAMES_MAX && rest != NULL)
        names[all.count++] = strsep(&rest, "\n");
    for (size_t i = 0; i < all.count; i++) {
        check_data(names[i]);
        check_record(names[i]);
        check_name(names[i]);
    }
    check(zk_queue_init(&queue, &all));
    check_line(&queue, all.count);
    zk_queue_release(&queue);
    free(text);
    return 0;
}
