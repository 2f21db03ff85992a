/* test_between.c - what others do between two steps of a change, one chosen moment at a time. */
#include "../support/steps.h"
#include "stores/file/map.h"
#include "stores/file/page.h"

#include <stdlib.h>
#include <string.h>

#define NAME "job"

static struct file_store *store; /* whose steps are met */

/* ---- the file grows between two looks at its size ---- */

static int grown;

static void grow_when_size_seen(const char *step)
{
    const struct page page = {0};
    uint32_t page_no;

    if (strcmp(step, "size_seen") != 0)
        return;
    steps_hook = NULL;
    assert_int_equal(hf__page_append(store, &page, &page_no, NULL), HF_OK);
    assert_non_null(hf__map_page(store, page_no)); /* as another thread that has use for it */
    grown++;
}

static void a_file_that_grows_is_not_cut_off(void **state)
{
    struct hf_store_base *base;
    struct hf_error err = {0};
    struct kit_hold hold;

    (void)state;
    base = kit_open(kit_fast_dir());
    store = hf__file_of(base);
    if (!store->mapped) {
        kit_close(base);
        skip();
    }
    steps_hook = grow_when_size_seen;
    kit_expect(kit_take(base, NAME, 60000, 0, &hold, &err), HF_OK, &err);
    steps_hook = NULL;
    assert_int_equal(grown, 1);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    kit_close(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_grows_is_not_cut_off),
    };

    (void)setenv("KIT_MAPPED", "1", 1);
    return KIT_RUN(tests);
}
