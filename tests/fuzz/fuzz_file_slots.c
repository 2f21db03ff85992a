/* fuzz_file_slots.c - a slot file with sums that fit and anything else in it. Built by fuzz.sh.
 *
 * The input is a list of edits: page, block, offset, a byte count and the bytes. Sums are made to
 * fit afterwards, so that what is tested is the sense of the numbers. The store may refuse, and
 * must neither crash nor read what is not there. */
#include "base/base.h"
#include "stores/file/operations.h"
#include "stores/file/slot.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES (PAGES_FIRST + 5) /* a client page, and some that were split off */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void no_log(const char *format, ...)
{
    (void)format;
}

static void no_vlog(const char *format, va_list args)
{
    (void)format;
    (void)args;
}

static const struct hf_host host = {.size = sizeof host,
                                    .now_ns = hf__now_ns,
                                    .wall_us = hf__wall_us,
                                    .random = hf__random,
                                    .log = no_log,
                                    .vlog = no_vlog};

static struct file_store *store;
static char sound[PAGES * PAGE_SIZE];  /* what a program of ours wrote */
static char spoilt[PAGES * PAGE_SIZE]; /* and what the fuzzer made of it */

static struct hf_claim claim_of(const char *name, int64_t patience_ms)
{
    return (struct hf_claim){.name = name,
                             .owner = "00112233445566778899aabbccddeeff",
                             .token = 7,
                             .label = "host/1/fuzz",
                             .ttl_ms = 1000,
                             .deadline_ns = hf__now_ns() + patience_ms * HF__NS_PER_MS,
                             .cancel_fd = -1};
}

static void put(off_t at, const void *data, size_t len)
{
    if (pwrite(store->slots_fd, data, len, at) != (ssize_t)len)
        abort();
}

/* A store with held locks, and some pages more than its roots. */
static void open_once(void)
{
    const char *folder = getenv("FUZZ_DIR");
    char url[600];
    char name[32];
    struct hf_store_base *base;
    struct hf_grant grant;

    (void)snprintf(url, sizeof url, "file:%s/store",
                   folder != NULL ? folder : "/tmp/holdfast-fuzz");
    if (hf__file_ops.open(&host, url, HF_NEVER, &base, NULL) != HF_OK)
        abort();
    store = hf__file_of(base);
    for (int i = 0; i < 120; i++) {
        struct hf_claim claim = claim_of(name, 1000);

        claim.detached = i % 2 == 0;
        (void)snprintf(name, sizeof name, "lock-%d", i);
        if (base->ops->acquire(base, &claim, &grant, NULL) != HF_OK)
            abort();
    }
    if (pread(store->slots_fd, sound, sizeof sound, 0) != sizeof sound)
        abort();
}

static void close_at_exit(void)
{
    hf__file_ops.close(&store->base, false);
}

/* Whatever the block is taken for has a sum that fits. */
static void make_fit(size_t at)
{
    static const char zeros[SLOT_SIZE];
    char *block = spoilt + at;
    struct slot slot;
    struct client_head head;

    if (at % PAGE_SIZE != 0) {
        memcpy(&slot, block, sizeof slot);
        slot.sum = hf__slot_sum(&slot);
        memcpy(block, &slot, sizeof slot);
    } else if (memcmp(sound + at + offsetof(struct client_head, magic), "client", 6) == 0) {
        memcpy(&head, block, sizeof head);
        head.sum = hf__client_sum(&head);
        memcpy(block, &head, sizeof head);
    } else if (memcmp(block, zeros, SLOT_SIZE) != 0) {
        hf__sum_set(block);
    }
}

static void spoil(const uint8_t *data, size_t size)
{
    memcpy(spoilt, sound, sizeof spoilt);
    while (size > 4) {
        size_t len = data[3] % 16 + 1u;
        size_t block = data[0] % PAGES * 8u + data[1] % 8;
        size_t at = (block > 0 ? block : 1) * SLOT_SIZE + data[2] % 256u * 2;

        if (len > size - 4)
            len = size - 4;
        if (at + len > sizeof spoilt)
            len = sizeof spoilt - at;
        memcpy(spoilt + at, data + 4, len);
        data += 4 + len;
        size -= 4 + len;
    }
    for (size_t at = PAGE_SIZE; at < sizeof spoilt; at += SLOT_SIZE)
        if (memcmp(spoilt + at, sound + at, SLOT_SIZE) != 0)
            make_fit(at);
    put(0, spoilt, sizeof spoilt);
}

static bool read_all(const struct hf_lock_info *info, void *data)
{
    *(size_t *)data += strlen(info->name) + strlen(info->label) + (size_t)info->age_ms;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_query query = {.name = "", .deadline_ns = hf__now_ns() + HF__NS_PER_S};
    struct hf_error err;
    size_t sum = 0;

    if (store == NULL) {
        open_once();
        (void)atexit(close_at_exit);
    }
    spoil(data, size);
    (void)hf__file_list(&store->base, &query, read_all, &sum, &err);
    for (int i = 0; i < 8; i++) {
        char name[32];
        struct hf_grant grant = {0};
        struct hf_claim claim;

        (void)snprintf(name, sizeof name, "lock-%d", i * 20); /* some are new */
        claim = claim_of(name, 20);
        claim.detached = i % 2 == 0;
        (void)store->base.ops->acquire(&store->base, &claim, &grant, &err);
        (void)store->base.ops->renew(&store->base, &claim, &grant, &err);
        claim.token = 0;
        (void)store->base.ops->release(&store->base, &claim, &err);
    }
    if (ftruncate(store->slots_fd, sizeof spoilt) != 0)
        abort();
    atomic_store(&store->page_count, PAGES); /* we cut it off ourselves */
    return 0;
}
