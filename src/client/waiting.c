/* waiting.c - the pauses of a caller who waits for a store, and opening one that may be down. */
#include "base/patience.h"
#include "client/client.h"

#include <string.h>

struct hf__wait hf__wait_begin(int64_t wait_ms)
{
    struct hf__wait wait;
    int64_t until_ns = 0;

    if (wait_ms < 0)
        until_ns = HF_NEVER;
    else if (wait_ms > 0)
        until_ns = hf__time_add(hf__now_ns(), hf__ms_to_ns(wait_ms));
    hf__wait_init(&wait, until_ns);
    return wait;
}

int64_t hf__wait_left_ms(int64_t until_ns)
{
    int64_t left_ns = until_ns - hf__now_ns();

    if (until_ns == HF_NEVER)
        return -1;
    return left_ns > 0 ? (left_ns + HF__NS_PER_MS - 1) / HF__NS_PER_MS : 0;
}

bool hf__wait_go_on(struct hf__wait *wait, const struct hf_open_options *options, int64_t asked_ns,
                    enum hf_status *status, struct hf_error *err)
{
    const struct hf__patience patience = {
        .deadline_ns = HF_NEVER, .cancel_fd = options->cancel_fd > 0 ? options->cancel_fd : -1};
    const struct hf__wait_answer answer = {
        .status = *status, .retry_after_ms = err->retry_after_ms, .asked_ns = asked_ns};
    struct hf__wait_step step;
    uint32_t dice;

    if (!hf__wait_may_pass(*status))
        return false;
    hf__random(&dice, sizeof dice);
    step = hf__wait_answered(wait, &answer, hf__now_ns(), dice);
    if (step.next == HF__WAIT_RETURN)
        return false;
    if (options->on_trouble != NULL)
        options->on_trouble(err, options->data);
    if (hf__patience_pause(&patience, step.until_ns) != HF__WAITED_CANCELLED)
        return true;
    *status = HF_CANCELLED;
    return false;
}

enum hf_status hf_open_waiting(const char *url, const struct hf_open_options *options,
                               struct hf_store **out, struct hf_error *err)
{
    struct hf_open_options o = {0};
    struct hf_error own;
    struct hf__wait wait;
    enum hf_status status;
    int64_t asked_ns;

    *out = NULL;
    if (err == NULL)
        err = &own;
    if (options == NULL || options->size == 0)
        return hf__fail(err, HF_INVALID, "options.size must be sizeof(struct hf_open_options)");
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    wait = hf__wait_begin(o.wait_ms);
    do {
        asked_ns = hf__now_ns();
        status = hf_open(url, out, err);
    } while (hf__wait_go_on(&wait, &o, asked_ns, &status, err));
    if (status == HF_CANCELLED)
        return hf__fail(err, HF_CANCELLED, "cancelled while waiting for the store");
    return status;
}
