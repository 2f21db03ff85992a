/* fork.c - noticing a fork without asking the kernel each time.
 *
 * A page that the kernel wipes in a forked child makes the difference visible with one read of
 * memory. Where the kernel cannot do that, getpid(2) is asked. */
#include "base/base.h"

#include <sys/mman.h>
#include <unistd.h>

void hf__fork_mark_init(struct hf__fork_mark *mark)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    mark->pid = getpid();
    mark->page = NULL;
    if (page == MAP_FAILED)
        return;
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, size);
        return;
    }
    *(int *)page = 1;
    mark->page = page;
}

void hf__fork_mark_release(struct hf__fork_mark *mark)
{
    if (mark->page != NULL)
        (void)munmap((void *)mark->page, (size_t)sysconf(_SC_PAGESIZE));
    mark->page = NULL;
}

bool hf__forked(const struct hf__fork_mark *mark)
{
    return mark->page != NULL ? *mark->page == 0 : getpid() != mark->pid;
}
