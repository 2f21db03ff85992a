/* keep.c - keeping what is held while CMD runs, and noticing that it is lost: the leases that we
 * took, and the holds above us that we rely on. The loss of one is the loss of all. */
#include "cli/run/supervise.h"

#include "base/base.h"
#include "cli/say/loss.h"
#include "core/lease.h"

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    KEEP_EARLY_PART = 4, /* of the time to the first renewal: how much sooner the keeper starts */
    KEEP_AGAIN_PART = 40 /* of the ttl: when that is tried again, if it did not work */
};

/* By the lease's time, not by ours: the grant may have been long in coming. */
int64_t run_keep_at_ns(const struct run_page *page, int64_t ttl_ms)
{
    int64_t lasts_ns = hf__deadline_ns(0, (uint32_t)ttl_ms);
    int64_t renew_ns = run_renew_ns(ttl_ms);

    return atomic_load(&page->deadline_ns) - lasts_ns + renew_ns - renew_ns / KEEP_EARLY_PART;
}

/* From now on the end of this descriptor is a loss. */
static bool watch(struct run_supervisor *s, int fd)
{
    struct epoll_event readable = {.events = EPOLLIN};

    if (s->lost_fd < 0)
        s->lost_fd = epoll_create1(EPOLL_CLOEXEC);
    return s->lost_fd >= 0 && fd >= 0 && epoll_ctl(s->lost_fd, EPOLL_CTL_ADD, fd, &readable) == 0;
}

void run_watch_above(struct run_supervisor *s)
{
    struct run_job *job = s->job;

    for (size_t i = 0; i < job->hold_count; i++) {
        const struct run_held *held = &job->holds[i];
        int fd = held->lost_fd;

        if (fd < 0) {
            s->above[s->above_count] =
                run_above_begin(job->store, held->name, held->token, &s->above_fds[s->above_count]);
            if (s->above[s->above_count] == NULL)
                continue;
            fd = s->above_fds[s->above_count++];
        }
        (void)watch(s, fd);
    }
}

void run_keep_end(struct run_supervisor *s)
{
    for (size_t i = 0; i < s->above_count; i++) {
        run_above_end(s->above[i]);
        (void)close(s->above_fds[i]);
    }
    if (s->lost_fd >= 0)
        (void)close(s->lost_fd);
    s->lost_fd = -1;
}

/* The keeper has them all from here on. */
static enum hf_status keep_all(struct run_supervisor *s, struct hf_error *err)
{
    struct take *take = &s->job->take;

    for (; s->kept < take->taken; s->kept++) {
        struct hf_lease *lease = take->leases[s->kept];
        enum hf_status status = hf_keep(lease, err);

        if (status != HF_OK)
            return status;
        if (!watch(s, hf_lease_fd(lease)))
            return hf__fail(err, HF_NOMEM, "out of descriptors");
    }
    return HF_OK;
}

/* Memory or threads that are short now may be there in a moment, and there is time for that. */
void run_keep(struct run_supervisor *s, int64_t now_ns)
{
    struct hf_error err;
    enum hf_status status = keep_all(s, &err);

    s->keep_at_ns = HF_NEVER;
    if (status == HF_LOST) {
        run_lease_lost(s);
    } else if (status != HF_OK) {
        s->keep_at_ns = now_ns + s->job->options->take.ttl_ms * HF__NS_PER_MS / KEEP_AGAIN_PART;
        if (!s->said_not_kept)
            cli_stderr_say(s->job->writer, "lock \"%s\" cannot be renewed yet: %s",
                           s->job->options->name, err.text);
        s->said_not_kept = true;
    }
}

/* Which of them, and how. */
static const char *describe_loss(const struct run_job *job, char what[CLI_LOSS_SIZE])
{
    for (size_t i = 0; i < job->take.taken; i++) {
        const struct hf_lease *lease = job->take.leases[i];

        if (hf_lease_loss(lease) == HF_LOSS_NONE)
            continue;
        (void)cli_loss_text(what, lease);
        return hf_lease_name(lease);
    }
    (void)snprintf(what, CLI_LOSS_SIZE, "is no longer held by the process above");
    for (size_t i = 0; i < job->hold_count; i++) {
        struct pollfd ended = {.fd = job->holds[i].lost_fd, .events = POLLIN};

        if (ended.fd >= 0 && poll(&ended, 1, 0) > 0)
            return job->holds[i].name;
    }
    return job->hold_count > 0 ? job->holds[0].name : job->options->name;
}

/* The keeper knows that a lease is over, or a hold above us has ended. */
void run_lease_lost(struct run_supervisor *s)
{
    const struct run_options *options = s->job->options;
    char what[CLI_LOSS_SIZE];
    const char *name = describe_loss(s->job, what);

    if (s->lost_fd >= 0)
        (void)close(s->lost_fd); /* one loss is enough */
    s->lost_fd = -1;
    s->outcome->lost = true;
    run_events_lost(s->job, what);
    if (options->on_loss == RUN_LOSS_WARN) {
        cli_stderr_say(s->job->writer, "lock \"%s\" %s; %s continues without it (--on-loss warn)",
                       name, what, options->command[0]);
        run_tell(s, RUN_WORD_LOST);
        return;
    }
    if (!s->said_why)
        cli_stderr_say(s->job->writer, "lock \"%s\" %s; ending %s", name, what,
                       options->command[0]);
    s->said_why = true;
    run_page_order(s->page, RUN_LOST);
    run_tell(s, RUN_WORD_ORDER);
}
