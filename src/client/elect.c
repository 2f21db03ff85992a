/* elect.c - standing for election, and asking who leads. Both are made of the public calls only:
 * src/core/elect.c decides when a candidate stands again. */
#include "base/patience.h"
#include "client/client.h"
#include "core/elect.h"

#include <holdfast/elect.h>
#include <holdfast/record.h>
#include <stdio.h>
#include <string.h>

#define READS_MAX 4 /* of lock and record, until they are of one term */

static enum hf_status check(struct hf_store *store, const char *name,
                            const struct hf_elect_options *given, struct hf_elect_options *out,
                            struct hf_error *err)
{
    size_t known = given->size < sizeof *out ? given->size : sizeof *out;

    memset(out, 0, sizeof *out);
    if (given->size == 0)
        return hf__fail(err, HF_INVALID, "options.size must be sizeof(struct hf_elect_options)");
    memcpy(out, given, known);
    if (out->on_elected == NULL)
        return hf__fail(err, HF_INVALID, "hf_elect needs on_elected");
    if (out->address == NULL)
        return HF_OK;
    if (!hf__text_valid(out->address, HF_ADDRESS_MAX))
        return hf__fail(err, HF_INVALID, "an address has 1 to %d bytes and no control characters",
                        HF_ADDRESS_MAX);
    if ((hf_store_features(store) & HF_FEATURE_RECORDS) == 0)
        return hf__fail_lock(err, HF_UNSUPPORTED, name, store->url,
                             ": an address needs records, which this kind of store does not keep");
    return HF_OK;
}

/* One term, from the lock to its release. HF_OK: *term and *again tell; anything else is to be
 * returned. */
static enum hf_status lead_once(struct hf_store *store, const char *name,
                                const struct hf_elect_options *options, struct hf__term *term,
                                struct hf_error *err)
{
    const struct hf_acquire_options acquire = {.size = sizeof acquire,
                                               .ttl_ms = options->ttl_ms,
                                               .wait_ms = -1,
                                               .label = options->label,
                                               .cancel_fd = options->cancel_fd,
                                               .on_lost = options->on_lost,
                                               .on_trouble = options->on_trouble,
                                               .data = options->data};
    enum hf_status status, put = HF_OK;
    struct hf_lease *lease;
    bool again = true;

    if ((status = hf_acquire(store, name, &acquire, &lease, err)) != HF_OK)
        return status;
    term->began_ns = hf__now_ns();
    if (options->address != NULL)
        put =
            hf_record_put(lease, HF_LEADER_KEY, options->address, strlen(options->address), 0, err);
    if (put == HF_OK)
        again = options->on_elected(lease, options->data);
    status = hf_release(lease, put == HF_OK ? err : NULL);
    term->ended_ns = hf__now_ns();
    term->end = !again                                ? HF__TERM_TOLD
                : status == HF_LOST || put == HF_LOST ? HF__TERM_LOST
                : put == HF_OK                        ? HF__TERM_DONE
                                                      : HF__TERM_FAILED;
    if (put != HF_OK && put != HF_LOST && !hf__wait_may_pass(put))
        return put;
    return again ? HF_OK : status;
}

enum hf_status hf_elect(struct hf_store *store, const char *name,
                        const struct hf_elect_options *options, struct hf_error *err)
{
    struct hf_elect_options o;
    struct hf__patience patience = {.deadline_ns = HF_NEVER, .cancel_fd = -1};
    struct hf__elect elect;
    struct hf_error own;
    enum hf_status status;

    if (err == NULL)
        err = &own;
    if ((status = check(store, name, options, &o, err)) != HF_OK)
        return status;
    if (o.cancel_fd > 0)
        patience.cancel_fd = o.cancel_fd;
    hf__elect_init(&elect, HF__RESTART_ALWAYS);
    for (;;) {
        struct hf__term term = {.end = HF__TERM_TOLD};
        struct hf__elect_step step;
        uint32_t dice;

        status = lead_once(store, name, &o, &term, err);
        if (status != HF_OK || term.end == HF__TERM_TOLD)
            return status;
        hf__random(&dice, sizeof dice);
        step = hf__elect_term_over(&elect, &term, dice);
        if (hf__patience_pause(&patience, step.not_before_ns) == HF__WAITED_CANCELLED)
            return hf__fail_lock(err, HF_CANCELLED, name, store->url,
                                 ": cancelled between two terms");
    }
}

/* Who holds the lock, copied. */
struct seen {
    bool held;
    struct hf_leader leader;
    char label[HF_LABEL_MAX + 1];
    char address[HF_ADDRESS_MAX + 1];
    uint64_t address_term;
};

static bool copy_holder(const struct hf_lock_info *info, void *data)
{
    struct seen *seen = data;

    seen->held = info->held;
    seen->leader.term = info->token;
    seen->leader.age_ms = info->age_ms;
    seen->leader.remaining_ms = info->remaining_ms;
    (void)snprintf(seen->label, sizeof seen->label, "%s", info->label);
    return false;
}

static void copy_address(struct seen *seen, const struct hf_record *record)
{
    seen->address_term = record->token;
    if (hf__text_valid(record->value, HF_ADDRESS_MAX) && strlen(record->value) == record->value_len)
        (void)snprintf(seen->address, sizeof seen->address, "%s", (const char *)record->value);
}

/* Lock and record are read one after the other. A record of a later term than the lock's means that
 * the leader changed in between; one of an earlier term, that the leader has told no address. */
enum hf_status hf_leader(struct hf_store *store, const char *name, hf_leader_fn *fn, void *data,
                         struct hf_error *err)
{
    bool records = (hf_store_features(store) & HF_FEATURE_RECORDS) != 0;
    struct hf_record *record;
    struct seen seen;
    enum hf_status status;

    for (int i = 0; i < READS_MAX; i++) {
        memset(&seen, 0, sizeof seen);
        if ((status = hf_inspect(store, name, copy_holder, &seen, err)) != HF_OK)
            return status;
        if (!seen.held || !records)
            break;
        if ((status = hf_record_get(store, name, HF_LEADER_KEY, &record, NULL, err)) != HF_OK)
            return status;
        if (record != NULL)
            copy_address(&seen, record);
        hf_record_free(record);
        if (seen.address_term <= seen.leader.term)
            break;
    }
    if (seen.address_term != seen.leader.term)
        seen.address[0] = '\0';
    seen.leader.size = sizeof seen.leader;
    seen.leader.label = seen.label;
    seen.leader.address = seen.address;
    if (seen.held)
        fn(&seen.leader, data);
    return HF_OK;
}
