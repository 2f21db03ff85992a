/* queue.c - the order of a lock's children. */
#include "stores/zookeeper/queue.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 10 /* of a number, its sign included, unless it needs more */

static const char mark[] = "-lock-"; /* what Curator writes too, and kazoo reads */

/* Past the largest number the server writes negative ones: "-lock--2147483648" and so on, up to
 * "-lock--000000001". */
bool zk_sequence(const char *name, int32_t *out)
{
    size_t len = strlen(name);
    const char *digits;
    bool negative;
    uint64_t number;

    if (len < WIDTH)
        return false;
    digits = name + len - WIDTH;
    if (len > WIDTH && digits[0] == '-')
        digits++; /* nine, and the sign counts */
    negative = digits - name > 1 && digits[-1] == '-' && digits[-2] == '-';
    if (!hf__parse_u64(digits, &number) || number > (uint64_t)INT32_MAX + negative)
        return false;
    if (!negative && strlen(digits) < WIDTH)
        return false; /* a name that ends so by chance */
    *out = (int32_t)(negative ? -(int64_t)number : (int64_t)number);
    return true;
}

static bool has_owner(const char *name)
{
    unsigned char raw[HF_OWNER_LEN / 2];
    char owner[HF_OWNER_LEN + 1];

    if (strlen(name) <= HF_OWNER_LEN || strncmp(name + HF_OWNER_LEN, mark, strlen(mark)) != 0)
        return false;
    memcpy(owner, name, HF_OWNER_LEN);
    owner[HF_OWNER_LEN] = '\0';
    return hf__hex_decode(raw, sizeof raw, owner);
}

/* By czxid where it is known. Sequence numbers are compared as they are: a queue in which they
 * may have wrapped around is unsure and gets its czxids first. */
static int compare(const void *a, const void *b)
{
    const struct zk_entry *x = a;
    const struct zk_entry *y = b;

    if (x->czxid != y->czxid)
        return x->czxid < y->czxid ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

bool zk_queue_init(struct zk_queue *queue, const struct zk_names *names)
{
    *queue = (struct zk_queue){0};
    queue->at = calloc(names->count > 0 ? names->count : 1, sizeof *queue->at);
    if (queue->at == NULL)
        return false;
    for (size_t i = 0; i < names->count; i++) {
        struct zk_entry *entry = &queue->at[queue->count];

        if (strlen(names->at[i]) >= sizeof entry->name ||
            !zk_sequence(names->at[i], &entry->sequence))
            continue;
        memcpy(entry->name, names->at[i], strlen(names->at[i]) + 1);
        entry->foreign = !has_owner(entry->name);
        queue->count++;
    }
    qsort(queue->at, queue->count, sizeof *queue->at, compare);
    /* The counter of a parent ends at INT32_MAX: servers go on with negative numbers, or give the
     * last one again and again, as the version at hand has it. */
    for (size_t i = 0; i < queue->count; i++)
        if (queue->at[i].sequence < 0 || queue->at[i].sequence == INT32_MAX ||
            (i > 0 && queue->at[i].sequence == queue->at[i - 1].sequence))
            queue->unsure = true;
    return true;
}

bool zk_queue_init_alone(struct zk_queue *queue, const char *name)
{
    char *copy = strdup(name);
    struct zk_names names = {.at = &copy, .count = 1};
    bool good = copy != NULL && zk_queue_init(queue, &names) && queue->count == 1;

    free(copy);
    if (!good)
        zk_queue_release(queue);
    return good;
}

void zk_queue_release(struct zk_queue *queue)
{
    free(queue->at);
    *queue = (struct zk_queue){0};
}

void zk_queue_sort_czxid(struct zk_queue *queue)
{
    size_t kept = 0;

    for (size_t i = 0; i < queue->count; i++)
        if (queue->at[i].czxid != 0) {
            if (kept != i)
                queue->at[kept] = queue->at[i];
            kept++;
        }
    queue->count = kept;
    queue->unsure = false;
    qsort(queue->at, queue->count, sizeof *queue->at, compare);
}

bool zk_entry_is(const struct zk_entry *entry, const char *owner)
{
    return !entry->foreign && strncmp(entry->name, owner, HF_OWNER_LEN) == 0;
}

size_t zk_queue_find(const struct zk_queue *queue, const char *owner)
{
    for (size_t i = 0; i < queue->count; i++)
        if (zk_entry_is(&queue->at[i], owner))
            return i;
    return queue->count;
}

void zk_data_make(char out[ZK_DATA_MAX], uint32_t ttl_ms, int64_t waited_ms, const char *label)
{
    (void)snprintf(out, ZK_DATA_MAX, "1 %u %lld %s", ttl_ms, (long long)waited_ms,
                   label != NULL ? label : "");
}

void zk_data_revoke(char out[ZK_DATA_MAX], const struct zk_said *said)
{
    (void)snprintf(out, ZK_DATA_MAX, "2 %u %lld %lld %s\n%s\n%s", said->ttl_ms,
                   (long long)said->waited_ms, (long long)said->revocation.at_ms, said->label,
                   said->revocation.by, said->revocation.reason);
}

/* The number before the next space; *at is then behind it. */
static bool take_number(const char **at, uint64_t *out)
{
    size_t len = strcspn(*at, " ");
    char digits[24];

    if (len >= sizeof digits || (*at)[len] != ' ')
        return false;
    memcpy(digits, *at, len);
    digits[len] = '\0';
    *at += len + 1;
    return hf__parse_u64(digits, out);
}

/* A line, as far as it fits; *at is then the next one, or the end. */
static void take_line(const char **at, char *out, size_t size)
{
    char line[ZK_DATA_MAX];
    size_t len = strcspn(*at, "\n");

    (void)snprintf(line, sizeof line, "%.*s", (int)len, *at);
    hf__copy_printable(out, size, line);
    *at += len + ((*at)[len] != '\0');
}

bool zk_data_parse(const char *data, struct zk_said *out)
{
    uint64_t version;
    uint64_t ttl_ms;
    uint64_t waited_ms;
    uint64_t revoked_ms = 0;

    if (!take_number(&data, &version) || version < 1 || version > 2 ||
        !take_number(&data, &ttl_ms) || ttl_ms > HF_TTL_MAX_MS ||
        !take_number(&data, &waited_ms) || waited_ms > INT64_MAX)
        return false;
    *out = (struct zk_said){.ttl_ms = (uint32_t)ttl_ms, .waited_ms = (int64_t)waited_ms};
    out->revoked = version == 2;
    if (out->revoked && (!take_number(&data, &revoked_ms) || revoked_ms > INT64_MAX))
        return false;
    out->revocation.at_ms = (int64_t)revoked_ms;
    take_line(&data, out->label, sizeof out->label);
    if (out->revoked) {
        take_line(&data, out->revocation.by, sizeof out->revocation.by);
        take_line(&data, out->revocation.reason, sizeof out->revocation.reason);
    }
    return true;
}
