/* client.c - a client's page of details.
 *
 * Places in the table are handed out one after the other, with the clients' byte lock held. A page
 * that a client has given up is used again at once; that of a dead client when every hold that its
 * details tell of was passed on. */
#include "stores/file/client.h"
#include "base/base.h"
#include "stores/file/byte_lock.h"
#include "stores/file/details.h"
#include "stores/file/life.h"
#include "stores/file/queue.h"
#include "stores/file/slot.h"
#include "stores/file/step.h"
#include "stores/file/word.h"

#include <stddef.h>
#include <string.h>

#define LOOKS        64           /* places that are looked at before the table grows */
#define LIVES        8            /* clients that are asked whether they live */
#define AGAIN_NS     HF__NS_PER_S /* after a try that came to nothing */
#define PATIENCE_NS  (HF__NS_PER_S / 10)
#define CLIENT_MAGIC "client 1"

/* Does a word name these details? Called with the page of their lock locked, which is found by the
 * hash. Unless it is to be kept, the hold of such a word is ended, and the lock goes to the next.
 * False with HF_OK: no word names them now. */
static enum hf_status check_named(struct file_store *store, const struct bucket *bucket,
                                  const struct details *details, uint32_t number, bool keep,
                                  bool *named)
{
    struct view view;
    enum hf_status status = HF_OK;

    *named = false;
    for (int i = 0; i < SLOTS_PER_PAGE && status == HF_OK; i++) {
        if (bucket->page.slots[i].hash != details->hash)
            continue;
        do {
            status = hf__slot_read(store, bucket, i, &view, NULL);
            *named = status == HF_OK && view.token == details->token && view.expires_ns != 0 &&
                     hf__word_details(view.word) == number;
            if (*named && !keep)
                status = hf__queue_pass(store, &view, NULL);
        } while (status == HF_STALE);
        if (*named)
            break;
    }
    *named = *named && (keep || status != HF_OK);
    return status;
}

static bool is_named(struct file_store *store, off_t at, uint32_t number, bool keep)
{
    struct details details;
    struct bucket bucket;
    bool named = true;

    if (hf__map_read(store, at, &details, sizeof details, NULL) != HF_OK)
        return true;
    if (details.token == 0 || details.hash == 0)
        return false;
    if (hf__page_lock(store, details.hash, store->base.host->now_ns() + PATIENCE_NS, &bucket,
                      NULL) != HF_OK)
        return true;
    if (check_named(store, &bucket, &details, number, keep, &named) != HF_OK)
        named = true;
    hf__page_unlock(store, &bucket);
    return named;
}

/* Every hold of a dead client is passed on. */
static bool bury(struct file_store *store, uint32_t place, uint32_t page_no)
{
    for (uint32_t i = 1; i <= DETAILS_PER_PAGE; i++) {
        off_t at = hf__page_at(page_no) + (off_t)i * DETAILS_SIZE;

        if (is_named(store, at, place << 4 | i, false))
            return false;
        HF__STEP(bury_passed);
    }
    return true;
}

static bool read_client(struct file_store *store, uint32_t place, uint32_t *page_no,
                        uint64_t *client)
{
    return hf__client_page(store, place, page_no, NULL) == HF_OK &&
           hf__map_read(store, hf__page_at(*page_no) + (off_t)offsetof(struct client_head, client),
                        client, sizeof *client, NULL) == HF_OK;
}

/* A place whose client is gone, with nothing left to pass on. */
static bool find_place(struct file_store *store, struct client_count *table, uint32_t *place,
                       uint32_t *page_no)
{
    uint64_t client;
    int lives = 0;

    for (uint32_t i = 0; i < LOOKS && i < table->count; i++) {
        *place = table->turn++ % table->count;
        if (!read_client(store, *place, page_no, &client))
            continue;
        if (client == 0)
            return true;
        if (lives++ < LIVES && !hf__life_check(store, client) && bury(store, *place, *page_no))
            return true;
    }
    return false;
}

/* A new page, at the end of the table. */
static bool add_place(struct file_store *store, struct client_count *table, uint32_t *place,
                      uint32_t *page_no)
{
    struct client_page page = {.head = {.magic = CLIENT_MAGIC, .place = table->count}};
    uint32_t entries[2];
    off_t at = hf__page_at(TABLE_FIRST + table->count / CLIENTS_PER_PAGE) +
               (off_t)(table->count % CLIENTS_PER_PAGE / 2 * 8);

    if (table->count >= CLIENTS_MAX)
        return false;
    *place = table->count;
    page.head.sum = hf__client_sum(&page.head);
    if (hf__map_read(store, at, entries, sizeof entries, NULL) != HF_OK ||
        hf__page_append(store, &page, page_no, NULL) != HF_OK)
        return false;
    entries[*place % 2] = *page_no;
    if (hf__map_write(store, at, entries, sizeof entries, NULL) != HF_OK)
        return false;
    HF__STEP(client_entered);
    table->count++;
    return true;
}

/* With the clients' lock held. */
static void get_page(struct file_store *store)
{
    struct client_count table;
    uint32_t place, page_no;

    if (atomic_load(&store->client_page) != 0 || /* another thread was faster */
        hf__map_read(store, SLOT_SIZE, &table, sizeof table, NULL) != HF_OK ||
        table.count > CLIENTS_MAX)
        return;
    if (!find_place(store, &table, &place, &page_no) && !add_place(store, &table, &place, &page_no))
        return;
    if (hf__map_write(store, SLOT_SIZE, &table, 8, NULL) != HF_OK)
        return;
    HF__STEP(client_counted);
    if (hf__map_write(store, hf__page_at(page_no) + (off_t)offsetof(struct client_head, client),
                      &store->client, sizeof store->client, NULL) != HF_OK)
        return;
    HF__STEP(client_named);
    store->client_place = place;
    atomic_store(&store->client_page, page_no);
}

/* Details whose hold was ended by others: released by another process, broken, taken over. */
static void reclaim(struct file_store *store)
{
    for (uint32_t i = 1; i <= DETAILS_PER_PAGE; i++) {
        off_t at = hf__page_at(atomic_load(&store->client_page)) + (off_t)i * DETAILS_SIZE;
        uint_fast64_t use = atomic_load(&store->details_uses[i]);

        if ((use & 1) != 0 && !is_named(store, at, store->client_place << 4 | i, true))
            (void)atomic_compare_exchange_strong(&store->details_uses[i], &use, 0);
    }
}

static bool all_in_use(const struct file_store *store)
{
    for (uint32_t i = 1; i <= DETAILS_PER_PAGE; i++)
        if (atomic_load_explicit(&store->details_uses[i], memory_order_relaxed) == 0)
            return false;
    return true;
}

void hf__client_prepare(struct file_store *store, int64_t deadline_ns)
{
    bool have = atomic_load_explicit(&store->client_page, memory_order_acquire) != 0;
    int64_t now_ns;

    if (have && !all_in_use(store))
        return;
    now_ns = store->base.host->now_ns();
    if (now_ns < atomic_load(&store->client_at_ns))
        return;
    atomic_store(&store->client_at_ns, now_ns + AGAIN_NS);
    if (have) {
        reclaim(store);
        return;
    }
    if (deadline_ns > now_ns + PATIENCE_NS)
        deadline_ns = now_ns + PATIENCE_NS;
    if (hf__byte_lock(store, LOCK_CLIENTS, deadline_ns, NULL) != HF_OK)
        return;
    get_page(store);
    hf__byte_unlock(store, LOCK_CLIENTS);
}

/* Gives a page up that nothing names any more, with nothing in it that tells of anybody. */
static void wipe(struct file_store *store, uint32_t page_no)
{
    const struct client_details nothing[DETAILS_PER_PAGE] = {0};
    const uint64_t nobody = 0;
    off_t at = hf__page_at(page_no);

    if (hf__map_write(store, at + DETAILS_SIZE, nothing, sizeof nothing, NULL) == HF_OK)
        (void)hf__map_write(store, at + (off_t)offsetof(struct client_head, client), &nobody,
                            sizeof nobody, NULL);
}

void hf__client_sweep(struct file_store *store)
{
    int64_t until_ns = store->base.host->now_ns() + PATIENCE_NS;
    struct client_count table;
    uint32_t page_no;
    uint64_t client;

    if (hf__byte_lock(store, LOCK_CLIENTS, until_ns, NULL) != HF_OK)
        return;
    if (hf__map_read(store, SLOT_SIZE, &table, sizeof table, NULL) != HF_OK ||
        table.count > CLIENTS_MAX)
        table.count = 0;
    for (uint32_t place = 0; place < table.count; place++)
        if (read_client(store, place, &page_no, &client) && client != 0 &&
            !hf__life_check(store, client) && bury(store, place, page_no))
            wipe(store, page_no);
    hf__byte_unlock(store, LOCK_CLIENTS);
}

void hf__client_close(struct file_store *store)
{
    uint32_t page_no = atomic_load(&store->client_page);

    for (uint32_t i = 1; i <= DETAILS_PER_PAGE; i++)
        if (atomic_load(&store->details_uses[i]) != 0)
            return;
    if (page_no != 0)
        wipe(store, page_no);
}
