/* tool_put_over.c - a record for a hold whose time is over, while its child is still there.
 *
 *   tool_put_over URL
 *
 * Only the client knows the end of a hold; the server would take the record. Mostly the child is
 * gone by then, because another thread deletes it. So the clock is a day ahead for the thread that
 * writes, and for no other. Speaks TAP. */
#include "client/client.h"

#include <stdio.h>
#include <string.h>

#define NAME  "put-over"
#define OWNER "00112233445566778899aabbccddeeff"

static _Thread_local int64_t ahead_ns;
static const struct hf_host *real;
static int tests;
static int failed;

static int64_t now_ns(void)
{
    return real->now_ns() + ahead_ns;
}

static void ok(bool good, const char *what, const struct hf_error *err)
{
    printf("%sok %d - %s\n", good ? "" : "not ", ++tests, what);
    if (!good)
        printf("# %s: %s\n", hf_status_name(err->code), err->text);
    failed += !good;
}

static enum hf_status put(struct hf_store_base *store, uint64_t token, uint64_t number,
                          struct hf_error *err)
{
    const struct hf_record_write write = {.name = NAME,
                                          .owner = OWNER,
                                          .token = token,
                                          .number = number,
                                          .key = "k",
                                          .value = "x",
                                          .value_len = 1,
                                          .deadline_ns = hf__now_ns() + 5 * HF__NS_PER_S};

    return store->ops->record_put(store, &write, err);
}

static bool take_number(const struct hf_record *record, void *data)
{
    *(uint64_t *)data = record->number;
    return false;
}

/* The number of the record that is there. */
static uint64_t on_record(struct hf_store_base *store, struct hf_error *err)
{
    const struct hf_record_query query = {
        .name = NAME, .key = "k", .deadline_ns = hf__now_ns() + 5 * HF__NS_PER_S};
    uint64_t number = 0;

    if (store->ops->record_get(store, &query, take_number, &number, NULL, err) != HF_OK)
        return 0;
    return number;
}

static void check(struct hf_store_base *holder, struct hf_store_base *other, struct hf_error *err)
{
    const struct hf_claim claim = {.name = NAME,
                                   .owner = OWNER,
                                   .label = "host/1/put_over",
                                   .ttl_ms = 10000,
                                   .deadline_ns = hf__now_ns() + 5 * HF__NS_PER_S,
                                   .cancel_fd = -1};
    struct hf_grant grant = {0};
    enum hf_status status = holder->ops->acquire(holder, &claim, &grant, err);

    ok(status == HF_OK, "a hold", err);
    status = put(holder, grant.token, 1, err);
    ok(status == HF_OK, "a record of it", err);
    status = put(other, grant.token, 2, err);
    ok(status == HF_OK, "another process that knows owner and token writes as well", err);
    ahead_ns = 86400 * HF__NS_PER_S;
    status = put(holder, grant.token, 3, err);
    ok(status == HF_LOST, "when its time is over, the holder writes nothing any more", err);
    ahead_ns = 0;
    ok(on_record(other, err) == 2, "and nothing was written", err);
    status = put(holder, grant.token, 4, err);
    ok(status == HF_OK, "though its child was there all the time", err);
}

int main(int argc, char **argv)
{
    struct hf_store_base *holder, *other;
    struct hf_host leaping;
    struct hf_error err;

    if (argc != 2 || hf__registry_open(argv[1], &holder, &err) != HF_OK ||
        hf__registry_open(argv[1], &other, &err) != HF_OK) {
        fprintf(stderr, "cannot open\n");
        return 1;
    }
    real = holder->host;
    leaping = *real;
    leaping.now_ns = now_ns;
    holder->host = &leaping;
    check(holder, other, &err);
    holder->ops->close(holder, false);
    other->ops->close(other, false);
    printf("1..%d\n", tests);
    return failed > 0;
}
