/* relay.c - the loop of the relay: fetch, deliver, settle.
 *
 * A round begins with a fetch, from the lowest id on, and ends when nothing of it can be sent and
 * everything was answered; or, if somebody is slow to answer, after as long as we would wait for
 * new messages. Then what was answered is settled. What is still under way is carried into the next
 * round, in which nothing else of its key is sent. */
#include "cli/outbox/relay.h"

#include "base/base.h"
#include "cli/say/loss.h"

#include <stdlib.h>

enum {
    STOP_MS = 5000, /* how long answers are waited for when we are told to stop */
    BESIDE_SHARE = 10
};

enum { SIGNAL, LOST, FDS };

/* Where the loop is. */
struct round {
    int64_t began_ns;
    int64_t stop_ns;   /* we were told to stop, and give up at this time; 0 */
    int64_t resume_ns; /* the database is left alone until then */
    int64_t beside_ns; /* nothing is fetched beside what is under way until then */
    bool more;         /* there may be more to fetch at once */
};

static enum hf_status check(struct outbox_relay *relay, struct round *round, struct hf_error *err);
static void wait_for(struct outbox_relay *relay, const struct round *round);
static enum hf_status take_answers(struct outbox_relay *relay, struct hf_error *err);
static enum hf_status send_some(struct outbox_relay *relay, struct hf_error *err);
static enum hf_status next_round(struct outbox_relay *relay, struct round *round,
                                 struct hf_error *err);
static enum hf_status in_trouble(struct outbox_relay *relay, struct round *round,
                                 enum hf_status status, struct hf_error *err);

static bool is_sendable(const struct outbox_relay *relay)
{
    return relay->batch.under_way < relay->options->parallel &&
           hf__outbox_next(relay->batch.items, relay->batch.count, relay->batch.first) >= 0;
}

/* When there is something to do, if nobody answers before. */
static int64_t wake_ns(const struct outbox_relay *relay, const struct round *round)
{
    int64_t poll_ns = round->began_ns + relay->options->poll_ms * HF__NS_PER_MS;

    if (round->resume_ns > 0)
        return round->resume_ns;
    return round->stop_ns != 0 && round->stop_ns < poll_ns ? round->stop_ns : poll_ns;
}

static bool round_is_over(const struct outbox_relay *relay, const struct round *round)
{
    const struct outbox_batch *batch = &relay->batch;

    if (round->resume_ns > 0 && hf__now_ns() < round->resume_ns)
        return false;
    if (round->stop_ns == 0 && is_sendable(relay))
        return false;
    if (batch->under_way == 0 && (batch->answered > 0 || batch->blocked > 0 || round->more))
        return true;
    return hf__now_ns() >= wake_ns(relay, round);
}

enum hf_status outbox_relay_loop(struct outbox_relay *relay, struct hf_error *err)
{
    struct round round = {.more = true};
    enum hf_status status = HF_OK;

    while (status == HF_OK &&
           !(round.stop_ns != 0 && relay->batch.under_way == 0 && relay->batch.answered == 0)) {
        status = check(relay, &round, err);
        if (status == HF_OK && round.stop_ns == 0)
            status = send_some(relay, err);
        if (status == HF_OK && !round_is_over(relay, &round))
            wait_for(relay, &round);
        if (status == HF_OK)
            status = take_answers(relay, err);
        if (status == HF_OK && round_is_over(relay, &round))
            status = next_round(relay, &round, err);
    }
    if (status == HF_OK)
        return hf__fail(err, HF_CANCELLED, "told to stop");
    if (status == HF_LOST || status == HF_STALE)
        outbox_settle_last(relay);
    return status;
}

/* A relay that was frozen finds out here before it sends anything. */
static enum hf_status check(struct outbox_relay *relay, struct round *round, struct hf_error *err)
{
    struct pollfd fds[FDS] = {[SIGNAL] = {.fd = relay->signal_fd, .events = POLLIN},
                              [LOST] = {.fd = relay->lost_fd, .events = POLLIN}};
    char what[CLI_LOSS_SIZE];

    (void)hf__poll_until(fds, FDS, 0);
    if (fds[LOST].revents != 0 || hf_lease_remaining_ms(relay->lease) <= 0)
        return hf__fail(err, HF_LOST, "lock \"%.60s\" %.180s", hf_lease_name(relay->lease),
                        cli_loss_text(what, relay->lease));
    if (fds[SIGNAL].revents != 0 && round->stop_ns == 0)
        round->stop_ns = hf__now_ns() + STOP_MS * HF__NS_PER_MS;
    if (round->stop_ns != 0 && hf__now_ns() >= round->stop_ns && round->resume_ns > 0)
        return hf__fail(err, HF_CANCELLED,
                        "told to stop; %zu messages that were delivered are not "
                        "deleted, and will be delivered again",
                        relay->batch.answered);
    if (round->stop_ns != 0 && hf__now_ns() >= round->stop_ns && relay->batch.answered == 0)
        return hf__fail(err, HF_CANCELLED, "told to stop");
    return HF_OK;
}

/* Once we were told to stop, the signal is no news. */
static void wait_for(struct outbox_relay *relay, const struct round *round)
{
    struct pollfd fds[FDS] = {
        [SIGNAL] = {.fd = round->stop_ns == 0 ? relay->signal_fd : -1, .events = POLLIN},
        [LOST] = {.fd = relay->lost_fd, .events = POLLIN}};

    relay->sender_ops->wait(relay->sender, fds, FDS, wake_ns(relay, round));
}

static struct outbox_message *delivered_by(struct outbox_relay *relay, unsigned delivery,
                                           size_t *place)
{
    for (size_t i = relay->batch.first; i < relay->batch.count; i++)
        if (relay->batch.items[i].step == HF__OUTBOX_SENT &&
            relay->batch.messages[i].delivery == delivery) {
            *place = i;
            return &relay->batch.messages[i];
        }
    return NULL;
}

static void pass_answered(struct outbox_batch *batch)
{
    while (batch->first < batch->count && (batch->items[batch->first].step == HF__OUTBOX_DONE ||
                                           batch->items[batch->first].step == HF__OUTBOX_FAILED))
        batch->first++;
}

static enum hf_status take_answers(struct outbox_relay *relay, struct hf_error *err)
{
    struct hf__sender_answer answer;
    struct outbox_message *message;
    size_t place = 0;

    while (relay->sender_ops->answer(relay->sender, &answer)) {
        message = delivered_by(relay, answer.delivery, &place);
        if (message == NULL)
            continue;
        relay->deliveries[answer.delivery] = false;
        relay->batch.under_way--;
        if (answer.verdict == HF__OUTBOX_STALE) {
            relay->batch.items[place].step = HF__OUTBOX_WAITING;
            return hf__fail(err, HF_STALE, "the receiver has seen a later relay: %s", answer.why);
        }
        relay->batch.answered++;
        if (answer.verdict == HF__OUTBOX_DELIVERED) {
            relay->batch.items[place].step = HF__OUTBOX_DONE;
            relay->counts.sent++;
            continue;
        }
        relay->batch.items[place].step = HF__OUTBOX_FAILED;
        message->asked_ms = answer.asked_ms;
        hf__copy_printable(message->why, sizeof message->why, answer.why);
        relay->counts.retried++;
    }
    pass_answered(&relay->batch);
    return HF_OK;
}

static enum hf_status send_some(struct outbox_relay *relay, struct hf_error *err)
{
    struct outbox_batch *batch = &relay->batch;
    enum hf_status status = HF_OK;
    unsigned delivery = 0;
    size_t from = batch->first;
    int place;

    while (status == HF_OK && batch->under_way < relay->options->parallel &&
           (place = hf__outbox_next(batch->items, batch->count, from)) >= 0) {
        struct outbox_message *message = &batch->messages[place];

        from = (size_t)place + 1;
        while (relay->deliveries[delivery])
            delivery++;
        message->delivery = delivery;
        message->sent.token = relay->pass.token;
        status = relay->sender_ops->send(relay->sender, delivery, &message->sent, err);
        if (status == HF_OK) {
            relay->deliveries[delivery] = true;
            batch->items[place].step = HF__OUTBOX_SENT;
            batch->under_way++;
        }
    }
    return status;
}

static bool needs_body(const struct outbox_batch *batch, size_t i)
{
    return i >= batch->carried && batch->items[i].blocker == 0 && batch->messages[i].body == NULL;
}

static enum hf_status fetch_bodies(struct outbox_relay *relay, struct hf_error *err)
{
    struct outbox_answer answer = {.row = outbox_batch_add_body, .data = &relay->batch};
    char *ids = outbox_batch_list(&relay->batch, needs_body);
    enum hf_status status = HF_OK;

    if (ids == NULL)
        return hf__nomem(err);
    if (ids[0] != '\0') {
        hf__outbox_put_bodies(outbox_db_say(&relay->db), &relay->db.names, ids);
        status = outbox_db_do(&relay->db, &answer, err);
    }
    free(ids);
    return status;
}

/* aside: as hf__outbox_put_fetch has it. */
static enum hf_status fetch_some(struct outbox_relay *relay, const char *aside,
                                 struct hf_error *err)
{
    struct outbox_answer answer = {.row = outbox_batch_add, .data = &relay->batch};
    enum hf_status status;

    hf__outbox_put_fetch(outbox_db_say(&relay->db), &relay->db.names, relay->options->batch, aside);
    status = aside == NULL ? outbox_db_again(&relay->db, NULL, 0, &answer, err)
                           : outbox_db_do(&relay->db, &answer, err);
    if (status == HF_OK)
        status = fetch_bodies(relay, err);
    if (status == HF_OK)
        outbox_batch_link(&relay->batch);
    return status;
}

/* Whether all that a fetch brought stands behind what is under way, and left no room for others. */
static bool is_held_up(const struct outbox_relay *relay)
{
    const struct outbox_batch *batch = &relay->batch;

    return batch->under_way > 0 && batch->under_way < relay->options->parallel &&
           batch->blocked == 0 && (batch->full || batch->rows >= relay->options->batch) &&
           !is_sendable(relay);
}

static bool is_under_way(const struct outbox_batch *batch, size_t i)
{
    return batch->items[i].step == HF__OUTBOX_SENT;
}

/* The messages of other keys. The fetch has to pass over those that wait, which may be many, so it
 * is not done every time. */
static enum hf_status fetch_beside(struct outbox_relay *relay, struct round *round,
                                   struct hf_error *err)
{
    char *aside = outbox_batch_list(&relay->batch, is_under_way);
    int64_t began_ns = hf__now_ns();
    enum hf_status status;

    if (aside == NULL)
        return hf__nomem(err);
    outbox_batch_again(&relay->batch);
    status = fetch_some(relay, aside, err);
    free(aside);
    round->beside_ns = hf__now_ns() + BESIDE_SHARE * (hf__now_ns() - began_ns);
    return status;
}

static enum hf_status fetch(struct outbox_relay *relay, struct round *round, struct hf_error *err)
{
    struct outbox_batch *batch = &relay->batch;
    enum hf_status status = relay->db.link != NULL ? HF_OK : outbox_db_open(&relay->db, err);

    if (status != HF_OK)
        return status;
    status = fetch_some(relay, NULL, err);
    round->more = batch->count > batch->carried;
    if (status == HF_OK && is_held_up(relay) && hf__now_ns() >= round->beside_ns)
        status = fetch_beside(relay, round, err);
    if (status == HF_UNREACHABLE)
        outbox_db_close(&relay->db);
    if (status != HF_OK)
        outbox_batch_shrink(batch); /* those without a body were not fetched to the end */
    return status;
}

static enum hf_status next_round(struct outbox_relay *relay, struct round *round,
                                 struct hf_error *err)
{
    struct outbox_batch *batch = &relay->batch;
    enum hf_status status = HF_OK;

    if (hf_lease_remaining_ms(relay->lease) <= 0)
        return HF_OK; /* check() says it */
    if (batch->answered > 0 || batch->blocked > 0)
        status = outbox_settle(relay, err);
    if (status == HF_OK) {
        outbox_batch_shrink(batch);
        if (relay->db.link != NULL)
            outbox_tell_figures(relay, false);
        round->began_ns = hf__now_ns();
        round->more = false;
        if (round->stop_ns == 0)
            status = fetch(relay, round, err);
    }
    if (status != HF_OK)
        return in_trouble(relay, round, status, err);
    round->resume_ns = 0;
    hf__backoff_worked(&relay->backoff);
    if (relay->told)
        cli_stderr_say(relay->writer, "database %s: it answers again", relay->db.shown);
    relay->told = false;
    return HF_OK;
}

/* What may pass is waited for; what was answered is kept meanwhile. */
static enum hf_status in_trouble(struct outbox_relay *relay, struct round *round,
                                 enum hf_status status, struct hf_error *err)
{
    uint32_t dice;

    if (status != HF_BUSY && status != HF_UNREACHABLE)
        return status;
    hf__random(&dice, sizeof dice);
    round->resume_ns = hf__backoff_failed(&relay->backoff, hf__now_ns(), dice);
    if (!relay->told && (status == HF_UNREACHABLE || relay->backoff.failures > 3)) {
        cli_stderr_say(relay->writer, "%s; trying again", err->text);
        relay->told = true;
    }
    return HF_OK;
}
