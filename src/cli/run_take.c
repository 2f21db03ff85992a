/* run_take.c - waiting for the store, and then for the lock, within one limit.
 *
 * A store that is down at the start may come back, as one may that goes down later: hf_acquire
 * outlives the second, and the same rule the first. */
#include "cli/run.h"

#include "base/base.h"

static bool goes_on(const struct run_patience *patience, enum hf_status status);

struct run_patience run_patience_of(int64_t wait_ms)
{
    int64_t now_ns = hf__now_ns();
    struct run_patience patience = {.wait_ms = wait_ms, .until_ns = HF_NEVER};
    if (wait_ms == 0)
        patience.until_ns = 0;
    else if (wait_ms > 0 && wait_ms < HF_NEVER / HF__NS_PER_MS)
        patience.until_ns = hf__time_add(now_ns, wait_ms * HF__NS_PER_MS);
    return patience;
}

void run_say_trouble(struct run_voice *voice, const struct run_patience *patience,
                     const struct hf_error *err)
{
    char left[32];
    if (patience->until_ns == HF_NEVER) {
        run_say(voice, "%s; waiting without limit (-w DURATION sets one, -n does not wait)",
                cli_text_of(err));
        return;
    }
    int64_t left_ms = (patience->until_ns - hf__now_ns()) / HF__NS_PER_MS;
    hf__format_duration(left, sizeof left, left_ms > 0 ? left_ms : 0);
    run_say(voice, "%s; waiting for at most %s", cli_text_of(err), left);
}

struct opening {
    const struct run_patience *patience;
    struct run_voice *voice;
    enum hf_status said;
};

/* Once for each kind of trouble. */
static void opening_trouble(const struct hf_error *why, void *data)
{
    struct opening *opening = data;
    if (opening->said != why->code)
        run_say_trouble(opening->voice, opening->patience, why);
    opening->said = why->code;
}

/* Signals are looked for by whoever called us, see run_door.c. */
enum hf_status run_open_store(const char *url, const struct run_patience *patience,
                              struct run_voice *voice, struct hf_store **out, struct hf_error *err)
{
    struct opening opening = {.patience = patience, .voice = voice, .said = HF_OK};
    struct hf_open_options options = {.size = sizeof options,
                                      .wait_ms = patience->wait_ms,
                                      .on_trouble = opening_trouble,
                                      .data = &opening};
    enum hf_status status = hf_open_waiting(url, &options, out, err);
    if (status == HF_OK && err->text[0] != '\0')
        run_say(voice, "warning: %s", err->text);
    return status;
}

/* The first try does not wait: if it succeeds, nobody needs to be told for whom we wait. */
enum hf_status run_take(struct run_wait *wait, const struct run_patience *patience,
                        struct hf_acquire_options *options, struct hf_lease **out,
                        struct hf_error *err)
{
    options->wait_ms = 0;
    enum hf_status status = hf_acquire(wait->store, wait->name, options, out, err);
    if (!goes_on(patience, status))
        return status;
    options->wait_ms = -1;
    if (patience->until_ns != HF_NEVER) {
        options->wait_ms = (patience->until_ns - hf__now_ns()) / HF__NS_PER_MS;
        if (options->wait_ms <= 0)
            return status;
    }
    run_wait_begin(wait, patience);
    if (status != HF_BUSY)
        run_wait_trouble(wait, err);
    status = hf_acquire(wait->store, wait->name, options, out, err);
    run_wait_hush(wait);
    return status;
}

static bool goes_on(const struct run_patience *patience, enum hf_status status)
{
    bool may_pass = status == HF_BUSY || status == HF_UNREACHABLE || status == HF_UNKNOWN ||
                    status == HF_QUARANTINE;
    return may_pass && patience->until_ns != 0;
}
