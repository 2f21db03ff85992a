/* inspect.c - what only looks: the locks, one lock, the store, and whether it answers. */
#include "serve/inspect.h"

#include "serve/answer.h"
#include "serve/credentials.h"
#include "serve/listing.h"
#include "serve/metrics.h"

#include "base/base.h"

#include <holdfast/repair.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_DEFAULT = 500, LIMIT_MAX = 10000 }; /* locks in an answer */

#define READY_NS HF__NS_PER_S /* how long an answer of the store is good */

struct readiness {
    pthread_mutex_t lock;
    int64_t asked_ns;
    struct hf_error answer;
    int64_t quarantine_ms;           /* for how long it grants nothing; 0: it does */
    pthread_mutex_t identity_lock;   /* of this: whoever asks the store holds the other */
    char identity[HF_IDENTITY_SIZE]; /* "" until the store told it */
};

struct readiness *readiness_open(void)
{
    struct readiness *readiness = calloc(1, sizeof *readiness);

    if (readiness == NULL)
        return NULL;
    pthread_mutex_init(&readiness->lock, NULL);
    pthread_mutex_init(&readiness->identity_lock, NULL);
    return readiness;
}

void readiness_close(struct readiness *readiness)
{
    if (readiness == NULL)
        return;
    pthread_mutex_destroy(&readiness->identity_lock);
    pthread_mutex_destroy(&readiness->lock);
    free(readiness);
}

/* The value of a parameter, NULL if it was not given; parameters that are not known are passed
 * over, as fields are. */
static const char *parameter(const struct http_parameter *all, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].value;
    return NULL;
}

/* The parameters of the query; -1: the answer says what is wrong. */
static int parameters(struct exchange *x, struct http_parameter all[HTTP_PARAMETERS_MAX])
{
    int count = http_parameters(x->request.query, all);

    if (count < 0)
        serve_refuse(
            x, 400, HF_INVALID,
            "the query has a bad escape, a parameter twice, or something that is not UTF-8");
    return count;
}

/* Which locks are asked for. */
struct choice {
    const char *prefix;
    const char *part; /* of the name or the label, in any case; "": whatever it is */
    uint64_t limit;
};

/* What the locks that one may see come to, whether they were asked for or not. */
struct totals {
    uint64_t held, waiters, foreign;
};

static bool may_see(const struct exchange *x, const struct hf_lock_info *info, const char *prefix)
{
    const struct credential *credential = x->who.credential;

    return strncmp(info->name, prefix, strlen(prefix)) == 0 &&
           (credential == NULL || credential_may(credential, RIGHT_LOOK, info->name));
}

static bool has_part(const struct hf_lock_info *info, const char *part)
{
    return strcasestr(info->name, part) != NULL ||
           (info->held && strcasestr(info->label, part) != NULL);
}

/* Prints those that were chosen and counts all. Returns how many there was no room for. */
static uint64_t print_locks(struct exchange *x, const struct listing_view *view,
                            const struct choice *choice, struct totals *totals, FILE *out)
{
    uint64_t shown = 0, more = 0;

    for (size_t i = 0; i < view->count; i++) {
        const struct hf_lock_info *info = &view->locks[i].info;

        if (!may_see(x, info, choice->prefix))
            continue;
        totals->held += info->held;
        totals->waiters += info->waiters;
        totals->foreign += info->held && info->foreign;
        if (!has_part(info, choice->part))
            continue;
        if (shown == choice->limit) {
            more++;
            continue;
        }
        fputs(shown++ > 0 ? ",\n " : "", out);
        cli_lock_json(out, info, CLI_TOKEN_TEXT);
    }
    return more;
}

/* As list --json, with the token as a string; and what the listing was like. */
static void put_locks(struct exchange *x, const struct listing_view *view,
                      const struct choice *choice)
{
    struct text *body = &x->answer.body;
    struct totals totals = {0};
    char *rows = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&rows, &size);
    uint64_t more = out != NULL ? print_locks(x, view, choice, &totals, out) : 0;

    if (out == NULL || fclose(out) != 0) {
        serve_refuse(x, 500, HF_NOMEM, "out of memory");
    } else {
        x->answer.code = 200;
        text_printf(body,
                    "{\"as_of_ms\": %" PRId64 ", \"took_ms\": %" PRId64 ", \"more\": %" PRIu64
                    ",\n \"totals\": {\"held\": %" PRIu64 ", \"waiters\": %" PRIu64
                    ", \"foreign\": %" PRIu64 "},\n \"locks\": [",
                    view->as_of_ms, view->took_ms, more, totals.held, totals.waiters,
                    totals.foreign);
        text_add(body, rows, size);
        text_printf(body, "]}\n");
    }
    free(rows);
}

/* What the query chooses. False: the answer says why not. */
static bool choose(struct exchange *x, struct http_parameter all[HTTP_PARAMETERS_MAX],
                   struct choice *out)
{
    int count = parameters(x, all);
    const char *prefix, *part, *limit;

    if (count < 0)
        return false;
    prefix = parameter(all, count, "prefix");
    part = parameter(all, count, "q");
    limit = parameter(all, count, "limit");
    *out = (struct choice){.prefix = prefix != NULL ? prefix : "",
                           .part = part != NULL ? part : "",
                           .limit = LIMIT_DEFAULT};
    if (limit != NULL && (!hf__parse_u64(limit, &out->limit) || out->limit > LIMIT_MAX)) {
        serve_refuse(x, 400, HF_INVALID, "limit: a number, %d at the most", LIMIT_MAX);
        return false;
    }
    /* A client that asks for all of them gets those that it may see. */
    return out->prefix[0] == '\0' || serve_may(x, RIGHT_LOOK, out->prefix);
}

void serve_locks(struct exchange *x)
{
    struct http_parameter all[HTTP_PARAMETERS_MAX];
    struct choice choice;
    struct listing_view *view;
    struct hf_error err;

    if (!choose(x, all, &choice))
        return;
    if (serve_listing(x->serve, &view, &err) != HF_OK) {
        serve_fail(x, &err);
        return;
    }
    put_locks(x, view, &choice);
    serve_listing_done(x->serve, view);
}

static bool copy_one(const struct hf_lock_info *info, void *data)
{
    (void)cli_lock_copy(data, info);
    return false;
}

void serve_lock(struct exchange *x)
{
    struct http_parameter all[HTTP_PARAMETERS_MAX];
    int count = parameters(x, all);
    const char *name = count > 0 ? parameter(all, count, "name") : NULL;
    struct cli_lock lock = {.text = NULL};
    struct listing_view view = {.locks = &lock, .as_of_ms = hf__wall_us() / 1000};
    int64_t from_ns = hf__now_ns();
    struct hf_error err;
    enum hf_status status;

    if (count < 0)
        return;
    if (name == NULL || !hf__name_valid(name)) {
        serve_refuse(x, 400, HF_INVALID, "name: the name of a lock, in the query");
        return;
    }
    if (!serve_may(x, RIGHT_LOOK, name))
        return;
    status = hf_inspect(x->serve->store, name, copy_one, &lock, &err);
    metrics_store(x->serve->metrics, OP_LOCK, status, hf__now_ns() - from_ns);
    view.took_ms = (hf__now_ns() - from_ns) / HF__NS_PER_MS;
    view.count = lock.text != NULL ? 1 : 0;
    if (status == HF_OK)
        put_locks(x, &view, &(struct choice){.prefix = "", .part = "", .limit = 1});
    else
        serve_fail(x, &err);
    cli_lock_clear(&lock);
}

/* Asked for until the store has told it; it does not change while we are connected. */
static void identity(struct serve *serve, char out[HF_IDENTITY_SIZE])
{
    struct readiness *readiness = serve->readiness;
    struct hf_error err;

    pthread_mutex_lock(&readiness->identity_lock);
    (void)stpcpy(out, readiness->identity);
    pthread_mutex_unlock(&readiness->identity_lock);
    if (out[0] != '\0' || hf_store_identity(serve->store, out, &err) != HF_OK)
        return;
    pthread_mutex_lock(&readiness->identity_lock);
    (void)stpcpy(readiness->identity, out);
    pthread_mutex_unlock(&readiness->identity_lock);
}

void serve_store(struct exchange *x)
{
    struct text *body = &x->answer.body;
    struct serve *serve = x->serve;
    const char *names[CLI_FEATURES_MAX];
    size_t count = cli_features(hf_store_features(serve->store), names);
    char id[HF_IDENTITY_SIZE];

    identity(serve, id);
    x->answer.code = 200;
    text_printf(body, "{\"store\": ");
    text_json(body, hf_store_url(serve->store));
    text_printf(body, ", \"identity\": ");
    if (id[0] != '\0')
        text_json(body, id);
    else
        text_printf(body, "null");
    text_printf(body, ", \"scheme\": ");
    text_json(body, serve->scheme);
    text_printf(body, ", \"features\": [");
    for (size_t i = 0; i < count; i++)
        text_printf(body, "%s\"%s\"", i > 0 ? ", " : "", names[i]);
    text_printf(body, "], \"version\": \"%s\", \"max_ttl_ms\": %" PRIu32 "}\n", hf_version(),
                serve->options.max_ttl_ms);
}

void serve_healthz(struct exchange *x)
{
    answer_ok(x, "\"alive\": true");
}

static bool ignore(const struct hf_lock_info *info, void *data)
{
    (void)info;
    (void)data;
    return false;
}

/* Whether it answers, and for how long it grants nothing. */
static void ask_store(struct serve *serve, struct readiness *readiness)
{
    int64_t from_ns = hf__now_ns();
    enum hf_status status = hf_inspect(serve->store, "readyz", ignore, NULL, &readiness->answer);
    struct hf_error why;

    readiness->answer.code = status;
    readiness->quarantine_ms = 0;
    if (status == HF_OK && hf_quarantine(serve->store, &why) == HF_QUARANTINE)
        readiness->quarantine_ms = why.retry_after_ms > 0 ? why.retry_after_ms : 1;
    readiness->asked_ns = hf__now_ns();
    metrics_store(serve->metrics, OP_READYZ, status, readiness->asked_ns - from_ns);
}

/* One asks, and the others wait for that answer: at most one question a second. */
void serve_readyz(struct exchange *x)
{
    struct readiness *readiness = x->serve->readiness;
    struct hf_error answer;
    int64_t quarantine_ms;

    pthread_mutex_lock(&readiness->lock);
    if (readiness->asked_ns == 0 || hf__now_ns() - readiness->asked_ns > READY_NS)
        ask_store(x->serve, readiness);
    answer = readiness->answer;
    quarantine_ms = readiness->quarantine_ms;
    pthread_mutex_unlock(&readiness->lock);
    if (answer.code == HF_OK)
        answer_ok(x, "\"ready\": true, \"quarantine_ms\": %" PRId64, quarantine_ms);
    else
        serve_fail(x, &answer);
    if (x->answer.code != 200)
        x->answer.code = 503;
}
