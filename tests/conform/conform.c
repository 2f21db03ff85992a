/* conform.c - the conformance suite: what every store must do, whatever engine is behind it.
 *
 * `conform URL`, or CONFORM_URL in the environment; speaks TAP. What a store does not claim to do
 * (its features) is not asked of it. CONFORM_TTL_MS: the shortest ttl that means something in this
 * store; 1000 if not given. CONFORM_ONLY: the one test to run. */
#include "conform.h"
#include "client/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct conform conform;

void suite_add(struct suite *suite, const char *name, CMUnitTestFunction test)
{
    const char *only = getenv("CONFORM_ONLY");

    if (only != NULL && strcmp(name, only) != 0)
        return;
    if (suite->count == COUNT(suite->tests))
        abort();
    suite->tests[suite->count++] = (struct CMUnitTest){.name = name, .test_func = test};
}

struct hf_store_base *client_try_open(void)
{
    struct hf_store_base *store = NULL;
    struct hf_error err;

    if (hf__registry_open(conform.url, &store, &err) != HF_OK) {
        print_error("# cannot open: %s\n", err.text);
        return NULL;
    }
    return store;
}

struct hf_store_base *client_open(void)
{
    struct hf_store_base *store = client_try_open();

    assert_non_null(store);
    return store;
}

void client_close(struct hf_store_base *store)
{
    store->ops->close(store, false);
}

void fresh_name(char *out, const char *stem)
{
    static unsigned count;
    unsigned char salt[4];
    char hex[9];

    hf__random(salt, sizeof salt);
    hf__hex_encode(hex, salt, sizeof salt);
    (void)snprintf(out, HF_NAME_MAX + 1, "%s.%s.%u", stem, hex,
                   __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED));
}

struct hold hold_new(const char *stem)
{
    struct hold hold = {0};

    fresh_name(hold.name, stem);
    return hold;
}

struct hold hold_same(const struct hold *other)
{
    struct hold hold = {0};

    memcpy(hold.name, other->name, sizeof hold.name);
    return hold;
}

struct hf_claim claim_of(const struct hold *hold, uint32_t ttl_ms)
{
    return (struct hf_claim){.name = hold->name,
                             .owner = hold->owner,
                             .token = hold->grant.token,
                             .label = "host/1/conform",
                             .ttl_ms = ttl_ms,
                             .deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS,
                             .cancel_fd = -1};
}

static enum hf_status ask(struct hf_store_base *store, struct hold *hold, struct hf_claim claim)
{
    unsigned char raw[HF_OWNER_LEN / 2];
    enum hf_status status;

    hf__random(raw, sizeof raw);
    hf__hex_encode(hold->owner, raw, sizeof raw);
    memset(&hold->grant, 0, sizeof hold->grant);
    claim.token = 0;
    status = store->ops->acquire(store, &claim, &hold->grant, &hold->err);
    if (hold->grant.owner[0] != '\0')
        memcpy(hold->owner, hold->grant.owner, sizeof hold->owner);
    hold->ttl_ms = hold->grant.ttl_ms != 0 ? hold->grant.ttl_ms : claim.ttl_ms;
    return status;
}

enum hf_status take(struct hf_store_base *store, struct hold *hold, uint32_t ttl_ms,
                    int64_t wait_ms)
{
    struct hf_claim claim = claim_of(hold, ttl_ms);

    if (wait_ms < 0)
        claim.wait_until_ns = HF_NEVER;
    else if (wait_ms > 0)
        claim.wait_until_ns = hf__now_ns() + wait_ms * HF__NS_PER_MS;
    return ask(store, hold, claim);
}

enum hf_status take_detached(struct hf_store_base *store, struct hold *hold, uint32_t ttl_ms)
{
    struct hf_claim claim = claim_of(hold, ttl_ms);

    claim.detached = true;
    claim.kept = HF_KEPT_NEVER;
    return ask(store, hold, claim);
}

enum hf_status take_cancel(struct hf_store_base *store, struct hold *hold, int cancel_fd)
{
    struct hf_claim claim = claim_of(hold, LONG_TTL_MS);

    claim.wait_until_ns = HF_NEVER;
    claim.cancel_fd = cancel_fd;
    return ask(store, hold, claim);
}

/* No answer says nothing: the contract says to try again, as the keeper does. */
enum hf_status renew(struct hf_store_base *store, struct hold *hold, uint32_t ttl_ms)
{
    int64_t end_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS;
    struct hf_grant grant;
    enum hf_status status;

    do {
        struct hf_claim claim = claim_of(hold, ttl_ms);

        memset(&grant, 0, sizeof grant);
        grant.revocation = &hold->revocation;
        status = store->ops->renew(store, &claim, &grant, &hold->err);
    } while ((status == HF_UNKNOWN || status == HF_UNREACHABLE) && hf__now_ns() < end_ns);
    grant.token = hold->grant.token;
    hold->grant = grant;
    if (status == HF_OK && ttl_ms != 0)
        hold->ttl_ms = grant.ttl_ms != 0 ? grant.ttl_ms : ttl_ms;
    return status;
}

enum hf_status release(struct hf_store_base *store, struct hold *hold)
{
    struct hf_claim claim = claim_of(hold, 0);

    return store->ops->release(store, &claim, &hold->err);
}

int64_t deadline_of(const struct hold *hold)
{
    return hf__deadline_ns(hold->grant.sent_at_ns, hold->ttl_ms);
}

struct seen {
    uint64_t waiters;
    bool held;
};

static bool note(const struct hf_lock_info *info, void *data)
{
    struct seen *seen = data;

    seen->waiters = info->waiters;
    seen->held = info->held;
    return true;
}

static struct seen look(struct hf_store_base *store, const char *name)
{
    struct hf_query query = {
        .name = name, .exact = true, .deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS};
    struct seen seen = {0};
    struct hf_error err;

    if (store->ops->list(store, &query, note, &seen, &err) != HF_OK)
        print_error("# list: %s\n", err.text);
    return seen;
}

uint64_t waiters_of(struct hf_store_base *store, const char *name)
{
    return look(store, name).waiters;
}

void await_line(struct hf_store_base *store, const char *name, uint64_t count)
{
    if (has(HF_FEATURE_FAIR))
        check_soon(waiters_of(store, name) == count);
    else
        check_pause_ms(50);
}

bool is_held(struct hf_store_base *store, const char *name)
{
    return look(store, name).held;
}

/* A store that has just started may grant nothing for a while: waited out once, before the tests.
 * And a plugin's schemes may differ in what they can do: the open store knows. */
static int meet(int features_fd)
{
    struct hold hold = hold_new("warm up");
    struct hf_store_base *store;
    unsigned features;

    if (hf__registry_open(conform.url, &store, &hold.err) != HF_OK ||
        take(store, &hold, LONG_TTL_MS, 120000) != HF_OK) {
        printf("Bail out! %s\n", hold.err.text);
        return 1;
    }
    (void)release(store, &hold);
    features = hf__features(store);
    (void)!write(features_fd, &features, sizeof features);
    client_close(store);
    return 0;
}

/* In a child: this process starts all the others, and must have no threads. */
static bool learn_features(unsigned *features)
{
    int ends[2];
    pid_t pid;
    ssize_t got;

    if (pipe(ends) != 0 || (pid = fork_child()) < 0) {
        perror("conform");
        return false;
    }
    if (pid == 0)
        exit(meet(ends[1]));
    (void)close(ends[1]);
    got = read(ends[0], features, sizeof *features);
    (void)close(ends[0]);
    (void)waitpid(pid, NULL, 0);
    return got == sizeof *features;
}

int main(int argc, char **argv)
{
    const char *ttl = getenv("CONFORM_TTL_MS");
    struct suite suite = {.count = 0};

    conform.url = argc > 1 ? argv[1] : getenv("CONFORM_URL");
    conform.short_ttl_ms = ttl != NULL ? (uint32_t)strtoul(ttl, NULL, 10) : 1000;
    if (conform.url == NULL) {
        fprintf(stderr, "usage: conform URL\n");
        return 64;
    }
    if (!learn_features(&conform.features))
        return 1;
    add_hold_tests(&suite);
    add_renew_tests(&suite);
    add_list_tests(&suite);
    add_wait_tests(&suite);
    add_any_tests(&suite);
    add_crowd_tests(&suite);
    add_record_tests(&suite);
    add_break_tests(&suite);
    add_forget_tests(&suite);
    add_waiter_tests(&suite);
    add_twice_tests(&suite);
    add_halves_tests(&suite);
    add_once_tests(&suite);
    return suite_run(&suite) > 0;
}
