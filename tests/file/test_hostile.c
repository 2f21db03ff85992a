/* test_hostile.c - a slot file written by somebody who knows how: every sum fits, and the numbers
 * are such as no program of ours would write. All of it is damage, and refused as such. The fuzzer
 * (fuzz.t) looks for what is forgotten here. */
#include "../support/faultkit.h"
#include "stores/file/slot.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME "job"

static uint32_t root_page(void)
{
    return 1 + (uint32_t)(hf__name_hash(NAME) & (ROOTS - 1));
}

static void many_splits(struct page *page)
{
    page->head.prefix = root_page() - 1;
    page->head.depth = 1u << 20;
}

static void born_late(struct page *page)
{
    page->head.prefix = root_page() - 1;
    page->head.born = 70;
    page->head.depth = 48;
}

static void born_before_its_time(struct page *page)
{
    page->head.prefix = root_page() - 1;
    page->head.born = 2;
    page->head.depth = 1;
}

static void strange_prefix(struct page *page)
{
    page->head.prefix = UINT64_MAX;
}

static void leads_to(struct page *page, uint32_t next)
{
    page->head.prefix = root_page() - 1;
    page->head.depth = SPLITS_MAX;
    for (int i = 0; i < SPLITS_MAX; i++)
        page->head.next[i] = next;
}

static void leads_to_itself(struct page *page)
{
    leads_to(page, root_page());
}

static void leads_to_the_header(struct page *page)
{
    leads_to(page, 0);
}

static void leads_nowhere(struct page *page)
{
    leads_to(page, UINT32_MAX);
}

static void leads_too_far(struct page *page)
{
    leads_to(page, UINT32_MAX - 1);
}

static void floor_too_high(struct page *page)
{
    page->head.prefix = root_page() - 1;
    page->head.floor = UINT64_MAX;
}

static void endless_line(struct page *page)
{
    page->slots[0].head = 1;
    page->slots[0].tail = UINT64_MAX / 4;
}

static void line_backwards(struct page *page)
{
    page->slots[0].head = 10;
    page->slots[0].tail = 9;
}

static void last_ticket(struct page *page)
{
    page->slots[0].head = UINT64_MAX;
    page->slots[0].tail = UINT64_MAX;
}

static void token_too_high(struct page *page)
{
    page->slots[0].word.low = UINT64_MAX;
}

static void taken_before_time_began(struct page *page)
{
    page->slots[0].details.taken_ns = INT64_MIN;
}

static void expires_too_late(struct page *page)
{
    page->slots[0].word.high |= (uint64_t)1 << 63;
}

static void details_nowhere(struct page *page)
{
    page->slots[0].word.high |= (uint64_t)0xfffff << 4;
}

static void long_ttl(struct page *page)
{
    page->slots[0].details.ttl_ms = UINT32_MAX;
}

static void broken_too_late(struct page *page)
{
    page->slots[0].broken = page->slots[0].word.low + 1;
}

static void name_without_end(struct page *page)
{
    page->slots[1].hash = hf__name_hash(NAME);
    memset(page->slots[1].name, 'x', sizeof page->slots[1].name);
}

static void details_of_nobody(struct page *page)
{
    page->slots[0].word.high |= 16 << 4; /* the head of the second client page */
}

static void control_characters(struct page *page)
{
    (void)snprintf(page->slots[1].name, sizeof page->slots[1].name, "\033[2J");
    page->slots[1].hash = root_page() - 1 + ROOTS;
}

static bool count_one(const struct hf_lock_info *info, void *data)
{
    (void)info;
    ++*(int *)data;
    return true;
}

/* A store whose one lock is held, and whose page is spoilt. */
static struct hf_store_base *spoilt(void (*spoil)(struct page *), struct kit_hold *hold)
{
    const char *dir = kit_fast_dir();
    struct hf_store_base *base = kit_open(dir);
    struct hf_error err = {0};
    struct page page;
    off_t at = (off_t)root_page() * PAGE_SIZE;
    int fd = open(kit_slots(dir), O_RDWR | O_CLOEXEC);

    kit_expect(kit_take_detached(base, NAME, 60000, hold, &err), HF_OK, &err);
    assert_int_equal(pread(fd, &page, sizeof page, at), sizeof page);
    spoil(&page);
    if (page.head.depth != 0 || page.head.prefix != 0)
        hf__sum_set(&page.head);
    for (int i = 0; i < 2; i++)
        if (page.slots[i].hash != 0)
            page.slots[i].sum = hf__slot_sum(&page.slots[i]);
    assert_int_equal(pwrite(fd, &page, sizeof page, at), sizeof page);
    (void)close(fd);
    return base;
}

static void numbers_are_checked(void **state)
{
    static const struct {
        const char *what;
        void (*spoil)(struct page *);
        enum hf_status renew; /* a hold that is plain to see needs nothing else of its page */
        enum hf_status drop;
    } cases[] = {
        {"many splits", many_splits, HF_CORRUPT, HF_CORRUPT},
        {"born late", born_late, HF_CORRUPT, HF_CORRUPT},
        {"born before its time", born_before_its_time, HF_CORRUPT, HF_CORRUPT},
        {"strange prefix", strange_prefix, HF_OK, HF_OK},
        {"leads to itself", leads_to_itself, HF_CORRUPT, HF_CORRUPT},
        {"leads to the header", leads_to_the_header, HF_CORRUPT, HF_CORRUPT},
        {"leads nowhere", leads_nowhere, HF_CORRUPT, HF_CORRUPT},
        {"leads too far", leads_too_far, HF_CORRUPT, HF_CORRUPT},
        {"floor too high", floor_too_high, HF_OK, HF_OK},
        {"endless line", endless_line, HF_OK, HF_OK},
        {"line backwards", line_backwards, HF_OK, HF_OK},
        {"last ticket", last_ticket, HF_OK, HF_OK},
        {"token too high", token_too_high, HF_CORRUPT, HF_CORRUPT},
        {"taken before time began", taken_before_time_began, HF_OK, HF_OK},
        {"expires too late", expires_too_late, HF_OK, HF_OK},
        {"details nowhere", details_nowhere, HF_CORRUPT, HF_CORRUPT},
        {"long ttl", long_ttl, HF_CORRUPT, HF_OK},
        {"broken too late", broken_too_late, HF_OK, HF_OK},
        {"name without end", name_without_end, HF_OK, HF_OK},
        {"details of nobody", details_of_nobody, HF_CORRUPT, HF_CORRUPT},
        {"control characters", control_characters, HF_CORRUPT, HF_CORRUPT},
    };
    struct hf_query query = {.name = "", .deadline_ns = HF_NEVER};

    (void)state;
    kit_world.no_fsync = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kit_hold hold;
        struct kit_hold other;
        struct hf_error err = {0};
        struct hf_store_base *base = spoilt(cases[i].spoil, &hold);
        int count = 0;

        print_message("# %s\n", cases[i].what);
        kit_expect(base->ops->list(base, &query, count_one, &count, &err), HF_CORRUPT, &err);
        assert_non_null(strstr(err.text, "repair"));
        if (cases[i].spoil != control_characters) { /* which only a listing shows */
            kit_expect(kit_take(base, NAME, 1000, 0, &other, &err), HF_CORRUPT, &err);
            kit_expect(kit_renew(base, &hold, &err), cases[i].renew, &err);
            kit_expect(kit_drop(base, &hold, &err), cases[i].drop, &err);
        }
        kit_close(base);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_checked),
    };

    return KIT_RUN(tests);
}
