/* old.c - a plugin that was built before there were optional slots: its table ends with `list`.
 *
 * What lies behind is not there: the table ends where a page ends, and the next page may not be
 * touched. */
#include "tiny.h"

#include <sys/mman.h>
#include <unistd.h>

#define OLD_SIZE offsetof(struct hf_store_ops, life_fd)

static struct hf_store_ops *table;

static enum hf_status open_it(const struct hf_host *host, const char *url, int64_t deadline_ns,
                              struct hf_store_base **out, struct hf_error *err)
{
    (void)url;
    (void)deadline_ns;
    (void)err;
    return tiny_open_with(table, host, out);
}

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const char *const schemes[] = {"old", NULL};
    static struct hf_store_plugin plugin;
    const struct hf_store_ops ops = {.size = OLD_SIZE,
                                     .schemes = schemes,
                                     .open = open_it,
                                     .close = tiny_close,
                                     .acquire = tiny_acquire,
                                     .renew = tiny_renew,
                                     .release = tiny_release,
                                     .list = tiny_list};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (table == NULL) {
        char *pages =
            mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
            abort();
        table = (struct hf_store_ops *)(void *)(pages + page - OLD_SIZE);
        memcpy(table, &ops, OLD_SIZE);
    }
    plugin = (struct hf_store_plugin){.abi = HF_STORE_ABI, .ops = table};
    return &plugin;
}
