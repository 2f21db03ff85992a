/* fake_store.c - a store in memory that answers what a test tells it to. */
#include "fake_store.h"
#include "check.h"
#include "client/client.h"

#include <stdlib.h>
#include <string.h>

#define SCRIPT_MAX 64
#define LOG_MAX    4096

struct fake_store {
    struct hf_store_base base;
    struct hf_store_ops ops;
    pthread_mutex_t lock;
    uint64_t last_token;
    struct {
        struct fake_answer script[SCRIPT_MAX];
        size_t scripted;
        size_t used;
        struct fake_answer always;
        struct fake_call *log;
        size_t count;
    } kinds[FAKE_OPS];
};

static struct fake_store *of(struct hf_store_base *base)
{
    return (struct fake_store *)base;
}

static void copy(char *out, size_t size, const char *text)
{
    (void)snprintf(out, size, "%s", text != NULL ? text : "");
}

/* Logs a call and says what to answer. */
static struct fake_answer enter(struct fake_store *fake, enum fake_op op,
                                const struct hf_claim *claim, bool forked)
{
    struct fake_call call = {.forked = forked, .at_ns = hf__now_ns()};
    struct fake_answer answer;

    if (claim != NULL) {
        copy(call.name, sizeof call.name, claim->name);
        copy(call.owner, sizeof call.owner, claim->owner);
        copy(call.label, sizeof call.label, claim->label);
        call.token = claim->token;
        call.ttl_ms = claim->ttl_ms;
        call.detached = claim->detached;
        call.kept = claim->kept;
        call.deadline_ns = claim->deadline_ns;
        call.wait_until_ns = claim->wait_until_ns;
        call.cancel_fd = claim->cancel_fd;
    }
    pthread_mutex_lock(&fake->lock);
    answer = fake->kinds[op].used < fake->kinds[op].scripted
                 ? fake->kinds[op].script[fake->kinds[op].used++]
                 : fake->kinds[op].always;
    if (fake->kinds[op].count < LOG_MAX)
        fake->kinds[op].log[fake->kinds[op].count] = call;
    fake->kinds[op].count++;
    pthread_mutex_unlock(&fake->lock);
    if (answer.until_deadline)
        while (hf__now_ns() < call.deadline_ns)
            check_pause_ms(1);
    check_pause_ms(answer.delay_ms);
    return answer;
}

static enum hf_status answer_to(const struct fake_answer *answer, const struct hf_claim *claim,
                                struct hf_grant *grant, struct hf_error *err)
{
    if (answer->status == HF_OK && grant != NULL) {
        grant->sent_at_ns = hf__now_ns() - (answer->sent_ms_ago + answer->delay_ms) * HF__NS_PER_MS;
        grant->ttl_ms = answer->ttl_ms;
        grant->remaining_ms = answer->remaining_ms;
    }
    if (grant != NULL)
        grant->loss = answer->loss;
    if (answer->status == HF_OK)
        return HF_OK;
    (void)hf__fail(err, answer->status, "lock \"%s\" in the fake store: %s", claim->name,
                   hf_status_text(answer->status));
    if (err != NULL)
        err->retry_after_ms = answer->retry_after_ms;
    return answer->status;
}

static enum hf_status fake_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                                   struct hf_grant *grant, struct hf_error *err)
{
    struct fake_store *fake = of(base);
    struct fake_answer answer = enter(fake, FAKE_ACQUIRE, claim, false);

    pthread_mutex_lock(&fake->lock);
    grant->token = answer.token != 0 ? answer.token : ++fake->last_token;
    pthread_mutex_unlock(&fake->lock);
    if (answer.no_token)
        grant->token = 0;
    return answer_to(&answer, claim, grant, err);
}

static enum hf_status fake_renew(struct hf_store_base *base, const struct hf_claim *claim,
                                 struct hf_grant *grant, struct hf_error *err)
{
    struct fake_answer answer = enter(of(base), FAKE_RENEW, claim, false);

    return answer_to(&answer, claim, grant, err);
}

static enum hf_status fake_release(struct hf_store_base *base, const struct hf_claim *claim,
                                   struct hf_error *err)
{
    struct fake_answer answer = enter(of(base), FAKE_RELEASE, claim, false);

    return answer_to(&answer, claim, NULL, err);
}

static enum hf_status fake_list(struct hf_store_base *base, const struct hf_query *query,
                                hf_list_fn *fn, void *data, struct hf_error *err)
{
    struct hf_claim claim = {.name = query->name, .deadline_ns = query->deadline_ns};
    struct hf_lock_info info = {.size = sizeof info, .name = "a lock", .label = "", .held = true};
    struct fake_answer answer = enter(of(base), FAKE_LIST, &claim, false);

    if (answer.status == HF_OK)
        (void)fn(&info, data);
    return answer_to(&answer, &claim, NULL, err);
}

static void fake_close(struct hf_store_base *base, bool forked)
{
    (void)enter(of(base), FAKE_CLOSE, NULL, forked);
}

static enum hf_status fake_open_op(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                   struct hf_store_base **out, struct hf_error *err)
{
    (void)host;
    (void)deadline_ns;
    (void)out;
    return hf__fail(err, HF_UNSUPPORTED, "%s cannot be opened", url);
}

struct fake_store *fake_new(unsigned features)
{
    static const char *const schemes[] = {"fake", NULL};
    struct fake_store *fake = calloc(1, sizeof *fake);

    if (fake == NULL)
        abort();
    fake->ops = (struct hf_store_ops){.size = sizeof fake->ops,
                                      .schemes = schemes,
                                      .features = features,
                                      .open = fake_open_op,
                                      .close = fake_close,
                                      .acquire = fake_acquire,
                                      .renew = fake_renew,
                                      .release = fake_release,
                                      .list = fake_list};
    fake->base.ops = &fake->ops;
    fake->base.host = &hf__host;
    pthread_mutex_init(&fake->lock, NULL);
    for (int i = 0; i < FAKE_OPS; i++) {
        fake->kinds[i].log = calloc(LOG_MAX, sizeof *fake->kinds[i].log);
        if (fake->kinds[i].log == NULL)
            abort();
    }
    return fake;
}

void fake_free(struct fake_store *fake)
{
    for (int i = 0; i < FAKE_OPS; i++)
        free(fake->kinds[i].log);
    pthread_mutex_destroy(&fake->lock);
    free(fake);
}

struct hf_store_base *fake_base(struct fake_store *fake)
{
    return &fake->base;
}

struct hf_store_ops *fake_ops(struct fake_store *fake)
{
    return &fake->ops;
}

struct hf_store *fake_open(struct fake_store *fake)
{
    struct hf_store *store = NULL;
    struct hf_error err;

    assert_int_equal(hf__store_wrap(&fake->base, "fake://u:secret@host", &store, &err), HF_OK);
    assert_non_null(store);
    return store;
}

void fake_next(struct fake_store *fake, enum fake_op op, struct fake_answer answer)
{
    pthread_mutex_lock(&fake->lock);
    if (fake->kinds[op].scripted == SCRIPT_MAX)
        abort();
    fake->kinds[op].script[fake->kinds[op].scripted++] = answer;
    pthread_mutex_unlock(&fake->lock);
}

void fake_always(struct fake_store *fake, enum fake_op op, struct fake_answer answer)
{
    pthread_mutex_lock(&fake->lock);
    fake->kinds[op].always = answer;
    pthread_mutex_unlock(&fake->lock);
}

size_t fake_count(struct fake_store *fake, enum fake_op op)
{
    size_t count;

    pthread_mutex_lock(&fake->lock);
    count = fake->kinds[op].count;
    pthread_mutex_unlock(&fake->lock);
    return count;
}

struct fake_call fake_call(struct fake_store *fake, enum fake_op op, size_t index)
{
    struct fake_call call = {0};
    bool there;

    pthread_mutex_lock(&fake->lock);
    there = index < fake->kinds[op].count && index < LOG_MAX;
    if (there)
        call = fake->kinds[op].log[index];
    pthread_mutex_unlock(&fake->lock);
    assert_true(there);
    return call;
}
