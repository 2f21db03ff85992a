/* many.c - renewing many holds with one statement.
 *
 * Each array of it is a parameter in PostgreSQL's binary form: dimensions, flags, the elements'
 * type, their number, the first index, then length and bytes of each; all numbers big-endian. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <stdlib.h>
#include <string.h>

static const struct pg_statement renew_statement = {
    "SELECT verdict, pg_catalog.pg_backend_pid() AS pid FROM "
    "holdfast.renew_many($1::pg_catalog.bytea[], $2::pg_catalog.bytea[], $3::bigint[], "
    "$4::integer[], $5::integer)",
    "holdfast_renew_many", 8};

enum { OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, HEAD_SIZE = 5 * 4 };

struct array {
    unsigned char *bytes;
    size_t len;
};

struct arrays {
    struct array names;
    struct array owners;
    struct array tokens;
    struct array ttls;
};

static void put(struct array *array, uint64_t number, size_t size)
{
    while (size-- > 0)
        array->bytes[array->len++] = (unsigned char)(number >> (8 * size));
}

/* Room for count elements of at most element_max bytes. False: no memory. */
static bool begin(struct array *array, uint32_t type, size_t count, size_t element_max)
{
    array->bytes = malloc(HEAD_SIZE + count * (4 + element_max));
    if (array->bytes == NULL)
        return false;
    put(array, 1, 4);
    put(array, 0, 4);
    put(array, type, 4);
    put(array, count, 4);
    put(array, 1, 4);
    return true;
}

static void put_bytes(struct array *array, const void *bytes, size_t len)
{
    put(array, len, 4);
    memcpy(array->bytes + array->len, bytes, len);
    array->len += len;
}

static void put_number(struct array *array, uint64_t number, size_t size)
{
    put(array, size, 4);
    put(array, number, size);
}

static void arrays_release(struct arrays *arrays)
{
    free(arrays->names.bytes);
    free(arrays->owners.bytes);
    free(arrays->tokens.bytes);
    free(arrays->ttls.bytes);
}

/* False: no memory, or an owner that is none. */
static bool arrays_init(struct arrays *arrays, const struct hf_claim *claims, size_t count)
{
    *arrays = (struct arrays){0};
    if (!begin(&arrays->names, OID_BYTEA, count, HF_NAME_MAX) ||
        !begin(&arrays->owners, OID_BYTEA, count, HF_OWNER_LEN / 2) ||
        !begin(&arrays->tokens, OID_INT8, count, 8) || !begin(&arrays->ttls, OID_INT4, count, 4))
        return false;
    for (size_t i = 0; i < count; i++) {
        unsigned char owner[HF_OWNER_LEN / 2];

        if (!hf__hex_decode(owner, sizeof owner, claims[i].owner))
            return false;
        put_bytes(&arrays->names, claims[i].name, strlen(claims[i].name));
        put_bytes(&arrays->owners, owner, sizeof owner);
        put_number(&arrays->tokens, claims[i].token, 8);
        put_number(&arrays->ttls, claims[i].ttl_ms, 4);
    }
    return true;
}

static enum hf_status take_in(struct pg_store *store, const struct pg_answer *answer, int row,
                              const struct hf_claim *claim, struct hf_grant *grant,
                              struct hf_error *err)
{
    bool locked;

    grant->sent_at_ns = answer->sent_at_ns;
    if (!pg_row_kept_many(answer->rows, row, &grant->loss, &locked))
        return pg_nonsense(store, claim->name, err);
    if (locked)
        return pg_error_fail(PG_STATE_ROW_LOCKED, "", claim->name, store->url.shown, err);
    if (grant->loss == HF_LOSS_BROKEN)
        return pg_broken(store, claim, grant, err);
    return grant->loss == HF_LOSS_NONE ? HF_OK : pg_lost(store, claim->name, grant->loss, err);
}

static enum hf_status ask(struct pg_store *store, const struct hf_claim *claims, size_t count,
                          struct pg_answer *answer, struct hf_error *err)
{
    struct pg_params params = {0};
    struct pg_call call = {.statement = &renew_statement,
                           .params = &params,
                           .patience = {.deadline_ns = HF_NEVER, .cancel_fd = -1},
                           .use = PG_USE_URGENT};
    struct arrays arrays;
    enum hf_status status;

    for (size_t i = 0; i < count; i++) {
        if (claims[i].deadline_ns < call.patience.deadline_ns)
            call.patience.deadline_ns = claims[i].deadline_ns;
        if (claims[i].ttl_ms > store->url.max_ttl_ms)
            return pg_above_max_ttl(store, &claims[i], err);
    }
    if (arrays_init(&arrays, claims, count)) {
        pg_params_bytes(&params, arrays.names.bytes, arrays.names.len);
        pg_params_bytes(&params, arrays.owners.bytes, arrays.owners.len);
        pg_params_bytes(&params, arrays.tokens.bytes, arrays.tokens.len);
        pg_params_bytes(&params, arrays.ttls.bytes, arrays.ttls.len);
        pg_params_number(&params, pg_left_ms(store, call.patience.deadline_ns));
        status = pg_call(store, &call, answer, err);
    } else {
        status = hf__nomem(err);
    }
    arrays_release(&arrays);
    return status;
}

enum hf_status pg_renew_many(struct hf_store_base *base, const struct hf_claim *claims,
                             struct hf_grant *grants, enum hf_status *results, size_t count,
                             struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_answer answer = {0};
    enum hf_status asked = ask(store, claims, count, &answer, err);
    enum hf_status status = asked;

    for (size_t i = 0; i < count; i++) {
        results[i] = asked;
        if (asked == HF_OK)
            results[i] = take_in(store, &answer, (int)i, &claims[i], &grants[i],
                                 status == HF_OK ? err : NULL);
        if (status == HF_OK)
            status = results[i];
    }
    PQclear(answer.rows);
    return status == HF_OK ? hf__ok(err) : status;
}
