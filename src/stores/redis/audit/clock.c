/* clock.c - how long answers take, and how the clock of a server runs: TIME is asked again and
 * again for most of a second. */
#include "stores/redis/audit/audit.h"
#include "base/base.h"

#include <inttypes.h>

#define GAP_MS    700 /* between the first reading of a clock and the last */
#define PAUSE_MS  10  /* between two */
#define ANSWER_MS 500 /* what one may take */
#define US_PER_MS 1000
#define US_PER_S  1000000

/* False: it did not answer, or not as Redis does. */
static bool read_clock(const struct rd_audit *audit, struct rd_audited *server,
                       struct hf__clock_reading *out)
{
    struct hf__patience patience = {.deadline_ns = audit->query->deadline_ns, .cancel_fd = -1};
    struct rd_request request = {0};
    struct rd_reply *reply;
    bool told;

    out->sent_ns = audit->host->now_ns();
    patience = hf__patience_until(&patience, out->sent_ns + ANSWER_MS * HF__NS_PER_MS);
    rd_request_command(&request, (const char *const[]){"TIME", NULL});
    if (rd_pool_ask(&server->node->pool, &request, 1, &patience, &reply, &server->failed) !=
        HF_OK) {
        rd_request_release(&request);
        return false;
    }
    rd_request_release(&request);
    out->heard_ns = audit->host->now_ns();
    out->wall_us = audit->host->wall_us();
    out->their_us = rd_reply_number(rd_reply_at(reply, 0), -1);
    told = out->their_us > 0 && out->their_us < INT64_MAX / US_PER_S;
    if (told)
        out->their_us = out->their_us * US_PER_S + rd_reply_number(rd_reply_at(reply, 1), 0);
    else
        (void)hf__fail(&server->failed, HF_UNREACHABLE, "%s",
                       reply->type == RD_REPLY_ERROR ? reply->text : "TIME tells no time");
    rd_reply_free(reply);
    return told;
}

static void look_once(struct rd_audit *audit)
{
    for (size_t i = 0; i < audit->count; i++) {
        struct rd_audited *server = &audit->servers[i];
        struct hf__clock_reading reading;

        if (server->failed.code != HF_OK || !read_clock(audit, server, &reading))
            continue;
        if (server->answers.count == 0)
            server->first = reading;
        server->last = reading;
        hf__samples_add(&server->answers, (reading.heard_ns - reading.sent_ns) / US_PER_MS);
    }
}

void rd_audit_watch_clocks(struct rd_audit *audit)
{
    int64_t began_ns = audit->host->now_ns();
    int64_t now_ns;

    do {
        look_once(audit);
        now_ns = audit->host->now_ns();
        if (now_ns < audit->query->deadline_ns)
            hf__sleep_ns(PAUSE_MS * HF__NS_PER_MS);
    } while (audit->query->scope == HF_AUDIT_ALL && now_ns < audit->query->deadline_ns &&
             now_ns - began_ns < GAP_MS * HF__NS_PER_MS);
}

void rd_audit_tell_clock(const struct rd_audit *audit, const struct rd_audited *server)
{
    static const struct hf__topic offset = {"store.clock_offset", "ms", "TIME"};
    static const struct hf__topic rate = {"store.clock_rate", "ppm", "TIME, twice"};
    static const struct hf__topic p50 = {"store.latency_p50", "us", "TIME"};
    static const struct hf__topic p99 = {"store.latency_p99", "us", "TIME"};
    const struct hf__topic *const all[] = {&offset, &rate, &p50, &p99};
    const struct hf__samples *answers = &server->answers;

    if (server->failed.code != HF_OK || answers->count < 2) {
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            hf__tell_unknown(audit->teller, *all[i], server->failed.text);
        return;
    }
    hf__tell(audit->teller, offset, "%" PRId64, hf__clock_ahead_us(&server->first) / US_PER_MS);
    hf__tell(audit->teller, rate, "%" PRId64, hf__clock_rate_ppm(&server->first, &server->last));
    hf__tell(audit->teller, p50, "%" PRId64, hf__samples_percentile(answers, 50));
    hf__tell(audit->teller, p99, "%" PRId64, hf__samples_percentile(answers, 99));
}

void rd_audit_tell_clocks(const struct rd_audit *audit)
{
    static const struct hf__topic apart = {"redlock.clocks_apart", "ms", "TIME"};
    int64_t least_us = INT64_MAX;
    int64_t most_us = INT64_MIN;

    for (size_t i = 0; i < audit->count; i++) {
        const struct rd_audited *server = &audit->servers[i];
        int64_t ahead_us = hf__clock_ahead_us(&server->last);

        if (server->answers.count == 0)
            continue;
        least_us = ahead_us < least_us ? ahead_us : least_us;
        most_us = ahead_us > most_us ? ahead_us : most_us;
    }
    if (least_us > most_us)
        hf__tell_unknown(audit->teller, apart, "no node told its time");
    else
        hf__tell(audit->teller, apart, "%" PRId64, (most_us - least_us) / US_PER_MS);
    hf__tell(audit->teller, (struct hf__topic){"redlock.clocks_limit", "ms", "max_ttl"}, "%" PRId64,
             audit->store->setup.url.max_ttl_ms / 3);
}
