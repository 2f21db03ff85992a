/* settle.c - what the relay writes to the database: short transactions that enter the fence first.
 */
#include "cli/outbox/relay.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* It was delivered. Without a body it was not even sent. */
static bool is_done(const struct outbox_batch *batch, size_t i)
{
    return batch->items[i].step == HF__OUTBOX_DONE && batch->messages[i].body != NULL;
}

static size_t count_done(const struct outbox_batch *batch)
{
    size_t done = 0;

    for (size_t i = 0; i < batch->count; i++)
        done += is_done(batch, i);
    return done;
}

/* The uids of these, as a list in a statement. */
static char *list_uids(const struct outbox_relay *relay, outbox_pick_fn *pick)
{
    const struct outbox_batch *batch = &relay->batch;
    enum hf__dialect dialect = relay->db.names.dialect;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    const char *comma = "";

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < batch->count; i++)
        if (pick(batch, i)) {
            fputs(comma, out);
            hf__outbox_put_uid(out, dialect, batch->messages[i].sent.uid);
            comma = ",";
        }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Deletes what was delivered, all of it or what has no mark. *deleted (may be NULL): how many. */
static enum hf_status delete_those(struct outbox_relay *relay, bool unmarked, int64_t *deleted,
                                   struct hf_error *err)
{
    char *ids = outbox_batch_list(&relay->batch, is_done);
    char *uids = list_uids(relay, is_done);
    struct outbox_answer answer = {.row = NULL};
    enum hf_status status = ids != NULL && uids != NULL ? HF_OK : hf__nomem(err);

    if (status == HF_OK && ids[0] != '\0') {
        FILE *out = outbox_db_say(&relay->db);

        hf__outbox_put_delete(out, &relay->db.names, ids);
        hf__outbox_put_only(out, &relay->db.names, uids);
        if (unmarked)
            hf__outbox_put_unmarked(out);
        status = outbox_db_do(&relay->db, &answer, err);
    }
    if (deleted != NULL)
        *deleted = answer.changed;
    free(ids);
    free(uids);
    return status;
}

/* What the fence has on record. */
struct mark {
    char name[HF_NAME_MAX + 1];
    char issuer[HF_IDENTITY_SIZE];
    uint64_t token;
};

static bool read_mark(const struct hf__db_text *values, void *data)
{
    struct mark *mark = data;

    hf__copy_printable(mark->name, sizeof mark->name, values[0].data ? values[0].data : "");
    mark->token = values[1].data != NULL ? strtoull(values[1].data, NULL, 10) : 0;
    hf__copy_printable(mark->issuer, sizeof mark->issuer, values[2].data ? values[2].data : "");
    return true;
}

static enum hf_status refused(struct outbox_relay *relay, struct hf_error *err)
{
    struct mark mark = {.token = 0};
    struct outbox_answer answer = {.row = read_mark, .data = &mark};
    enum hf_status status;

    hf__outbox_put_mark(outbox_db_say(&relay->db), &relay->db.names);
    status = outbox_db_do(&relay->db, &answer, err);
    if (status != HF_OK)
        return status;
    if (mark.name[0] != '\0' && strcmp(mark.name, relay->pass.name) != 0)
        return hf__fail(
            err, HF_INVALID,
            "this outbox is sent by a relay called \"%s\": use --name %s, or, if that is "
            "over for good, set the row of %s back",
            mark.name, mark.name, relay->db.names.fence);
    if (mark.token > relay->pass.token)
        return hf__fail(err, HF_STALE,
                        "a later relay is at work: token %" PRIu64 " is stale, %" PRIu64
                        " was admitted",
                        relay->pass.token, mark.token);
    return hf__fail(
        err, HF_INVALID,
        "the outbox follows tokens of store %s, and this one is another; after a change of "
        "stores: UPDATE %s SET token = 0, issuer = NULL",
        mark.issuer, relay->db.names.fence);
}

/* BEGIN, and enter. */
static enum hf_status begin(struct outbox_relay *relay, struct hf_error *err)
{
    struct outbox_answer answer = {.row = NULL};
    enum hf_status status =
        outbox_db_run(&relay->db, hf__outbox_begin(relay->db.names.dialect), err);

    if (status != HF_OK)
        return status;
    hf__outbox_put_enter(outbox_db_say(&relay->db), &relay->db.names, &relay->pass);
    status = outbox_db_do(&relay->db, &answer, err);
    if (status == HF_OK && answer.changed != 1)
        status = refused(relay, err);
    return status;
}

static enum hf_status end(struct outbox_relay *relay, enum hf_status status, struct hf_error *err)
{
    status = outbox_db_end(&relay->db, status, err);
    if (status == HF_UNREACHABLE)
        outbox_db_close(&relay->db);
    return status;
}

static enum hf_status connect_if_gone(struct outbox_relay *relay, struct hf_error *err)
{
    return relay->db.link != NULL ? HF_OK : outbox_db_open(&relay->db, err);
}

enum hf_status outbox_settle_begin(struct outbox_relay *relay, struct hf_error *err)
{
    enum hf_status status = connect_if_gone(relay, err);

    if (status != HF_OK)
        return status;
    status = begin(relay, err);
    if (status == HF_OK) {
        hf__outbox_put_free_orphans(outbox_db_say(&relay->db), &relay->db.names);
        status = outbox_db_do(&relay->db, NULL, err);
    }
    return end(relay, status, err);
}

/* The dice are thrown anew if the transaction is tried again. */
static enum hf_status mark_failures(struct outbox_relay *relay, uint64_t *dead,
                                    struct hf_error *err)
{
    const struct outbox_batch *batch = &relay->batch;
    enum hf_status status = HF_OK;

    for (size_t i = 0; i < batch->count && status == HF_OK; i++) {
        struct hf__outbox_failure failure = {.uid = batch->messages[i].sent.uid,
                                             .error = batch->messages[i].why};
        struct hf__outbox_mark mark;
        char id[24];
        uint32_t dice;

        if (batch->items[i].step != HF__OUTBOX_FAILED)
            continue;
        hf__random(&dice, sizeof dice);
        mark = hf__outbox_failed(batch->items[i].attempts, relay->options->attempts,
                                 batch->messages[i].asked_ms, dice);
        (void)snprintf(id, sizeof id, "%" PRIu64, batch->items[i].id);
        failure.id = id;
        failure.attempts = mark.attempts;
        failure.delay_ms = mark.delay_ms;
        *dead += mark.delay_ms < 0;
        hf__outbox_put_failure(outbox_db_say(&relay->db), &relay->db.names, &failure);
        status = outbox_db_do(&relay->db, NULL, err);
    }
    return status;
}

/* The messages that others are to wait for, each with its key and whether it still blocks that:
 * after a restore an id may be another message's, which frees nobody of this key. */
struct blocker {
    uint64_t id;
    const char *key;
    bool blocks;
};
struct blockers {
    struct blocker *list;
    size_t count;
};

static struct blocker *find_blocker(const struct blockers *blockers, uint64_t id)
{
    for (size_t i = 0; i < blockers->count; i++)
        if (blockers->list[i].id == id)
            return &blockers->list[i];
    return NULL;
}

static bool confirm_blocker(const struct hf__db_text *values, void *data)
{
    struct blocker *blocker = find_blocker(data, strtoull(values[0].data, NULL, 10));

    if (blocker != NULL)
        blocker->blocks = strcmp(blocker->key, values[1].data) == 0;
    return true;
}

static bool is_blocker(const struct blockers *blockers, uint64_t id)
{
    const struct blocker *blocker = find_blocker(blockers, id);

    return blocker != NULL && blocker->blocks;
}

/* Asks which of the messages that others are to wait for still block; they are locked then. */
static enum hf_status find_blockers(struct outbox_relay *relay, struct blockers *blockers,
                                    struct hf_error *err)
{
    const struct outbox_batch *batch = &relay->batch;
    FILE *out = NULL;
    char *ids = NULL;
    size_t len;
    struct outbox_answer answer = {.row = confirm_blocker, .data = blockers};
    enum hf_status status;

    out = open_memstream(&ids, &len);
    if (out == NULL)
        return hf__nomem(err);
    for (size_t i = 0; i < batch->count; i++) {
        uint64_t by = hf__outbox_parked_by(batch->items, i);

        if (batch->items[i].step != HF__OUTBOX_WAITING || by == 0 || find_blocker(blockers, by))
            continue;
        fprintf(out, "%s%" PRIu64, blockers->count > 0 ? "," : "", by);
        blockers->list[blockers->count++] = (struct blocker){.id = by, .key = batch->items[i].key};
    }
    if (fclose(out) != 0 || blockers->count == 0) {
        free(ids);
        return blockers->count == 0 ? HF_OK : hf__nomem(err);
    }
    hf__outbox_put_blockers(outbox_db_say(&relay->db), &relay->db.names, ids);
    free(ids);
    status = outbox_db_do(&relay->db, &answer, err);
    return status;
}

static bool is_parked(const struct outbox_batch *batch, size_t i)
{
    return batch->messages[i].parked;
}

/* Notes which messages have to be parked; returns how many. */
static size_t choose_parked(struct outbox_batch *batch, const struct blockers *blockers)
{
    size_t count = 0;

    for (size_t i = 0; i < batch->count; i++) {
        batch->messages[i].parked = batch->items[i].step == HF__OUTBOX_WAITING &&
                                    is_blocker(blockers, hf__outbox_parked_by(batch->items, i));
        count += batch->messages[i].parked;
    }
    return count;
}

static enum hf_status park_those(struct outbox_relay *relay, struct hf_error *err)
{
    char *ids = outbox_batch_list(&relay->batch, is_parked);
    char *uids = list_uids(relay, is_parked);
    enum hf_status status = ids != NULL && uids != NULL ? HF_OK : hf__nomem(err);

    if (status == HF_OK) {
        FILE *out = outbox_db_say(&relay->db);

        hf__outbox_put_park(out, &relay->db.names, ids);
        hf__outbox_put_only(out, &relay->db.names, uids);
        status = outbox_db_do(&relay->db, NULL, err);
    }
    free(ids);
    free(uids);
    return status;
}

static enum hf_status park(struct outbox_relay *relay, struct hf_error *err)
{
    struct blockers blockers = {.list = calloc(relay->batch.count + 1, sizeof *blockers.list)};
    enum hf_status status =
        blockers.list != NULL ? find_blockers(relay, &blockers, err) : hf__nomem(err);

    if (status == HF_OK && blockers.count > 0 && choose_parked(&relay->batch, &blockers) > 0)
        status = park_those(relay, err);
    free(blockers.list);
    return status;
}

static bool add_id(const struct hf__db_text *values, void *data)
{
    fprintf(data, "%s%s", ftell(data) > 0 ? "," : "", values[0].data);
    return true;
}

/* By what the database knows of attempts: another relay may have marked them since. */
static enum hf_status free_parked(struct outbox_relay *relay, struct hf_error *err)
{
    char *ids = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&ids, &len);
    struct outbox_answer answer = {.row = add_id, .data = out};
    char *done = outbox_batch_list(&relay->batch, is_done);
    char *uids = list_uids(relay, is_done);
    enum hf_status status = out != NULL && done != NULL && uids != NULL ? HF_OK : hf__nomem(err);

    if (status == HF_OK && done[0] != '\0') {
        FILE *say = outbox_db_say(&relay->db);

        hf__outbox_put_failed(say, &relay->db.names, done);
        hf__outbox_put_only(say, &relay->db.names, uids);
        status = outbox_db_do(&relay->db, &answer, err);
    }
    if (out != NULL && fclose(out) != 0 && status == HF_OK)
        status = hf__nomem(err);
    if (status == HF_OK && len > 0) {
        hf__outbox_put_free(outbox_db_say(&relay->db), &relay->db.names, ids);
        status = outbox_db_do(&relay->db, NULL, err);
    }
    free(done);
    free(uids);
    free(ids);
    return status;
}

/* Most messages never failed, and nothing is parked behind them: they are deleted first. Of the
 * others, what is parked behind them is freed before they are deleted. */
static enum hf_status delete_done(struct outbox_relay *relay, struct hf_error *err)
{
    int64_t deleted = 0;
    enum hf_status status = delete_those(relay, true, &deleted, err);

    if (status != HF_OK || deleted == (int64_t)count_done(&relay->batch))
        return status;
    status = free_parked(relay, err);
    return status == HF_OK ? delete_those(relay, false, NULL, err) : status;
}

/* The usual case, in one statement. *settled: that was all. What it did not delete, because it was
 * refused or somebody has marked it, is left to the transaction that follows. */
static enum hf_status settle_at_once(struct outbox_relay *relay, bool *settled,
                                     struct hf_error *err)
{
    const struct outbox_batch *batch = &relay->batch;
    size_t done = count_done(batch);
    struct outbox_answer answer = {.row = NULL};
    char *ids, *uids;
    enum hf_status status;

    *settled = false;
    if (relay->db.forgets || done != batch->answered || batch->blocked > 0 ||
        !hf__outbox_put_settle(outbox_db_say(&relay->db), &relay->db.names, &relay->pass))
        return HF_OK;
    ids = outbox_batch_list(batch, is_done);
    uids = list_uids(relay, is_done);
    status = ids != NULL && uids != NULL ? HF_OK : hf__nomem(err);
    if (status == HF_OK)
        status = outbox_db_again(&relay->db,
                                 (struct hf__db_text[]){{ids, strlen(ids)}, {uids, strlen(uids)}},
                                 2, &answer, err);
    *settled = status == HF_OK && answer.changed == (int64_t)done;
    free(ids);
    free(uids);
    if (status == HF_UNREACHABLE)
        outbox_db_close(&relay->db);
    return status == HF_UNSUPPORTED ? HF_OK : status;
}

enum hf_status outbox_settle(struct outbox_relay *relay, struct hf_error *err)
{
    uint64_t dead = 0;
    bool settled = false;
    enum hf_status status = connect_if_gone(relay, err);

    if (status == HF_OK)
        status = settle_at_once(relay, &settled, err);
    if (status != HF_OK || settled)
        return status;
    status = begin(relay, err);
    if (status == HF_OK)
        status = delete_done(relay, err);
    if (status == HF_OK)
        status = mark_failures(relay, &dead, err);
    if (status == HF_OK)
        status = park(relay, err);
    status = end(relay, status, err);
    if (status == HF_OK)
        relay->counts.dead += dead;
    return status;
}

void outbox_settle_last(struct outbox_relay *relay)
{
    struct hf_error dropped;

    if (relay->db.link != NULL)
        (void)delete_those(relay, true, NULL, &dropped);
}
