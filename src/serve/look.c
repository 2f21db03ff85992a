/* look.c - what only looks: the locks, one lock, the store, and whether it answers. */
#include "serve/look.h"

#include "serve/answer.h"
#include "serve/listing.h"
#include "serve/metrics.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_DEFAULT = 500, LIMIT_MAX = 10000 }; /* locks in an answer */

#define READY_NS HF__NS_PER_S /* an answer of the store is good for so long */

struct readiness {
    pthread_mutex_t lock;
    int64_t asked_ns;
    struct hf_error answer;
    pthread_mutex_t identity_lock; /* of this: who asks the store holds the other one */
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

/* The parameters of the query; -1: the response says what is wrong. */
static int parameters(struct exchange *x, struct http_parameter all[HTTP_PARAMETERS_MAX])
{
    int count = http_parameters(x->request.query, all);

    if (count < 0)
        serve_refuse(x, 400, HF_INVALID,
                     "the query has a bad escape, a parameter twice, or what is not UTF-8");
    return count;
}

/* As list --json, with the token as a string; and what the listing was like. */
static void put_locks(struct exchange *x, const struct listing_view *view, const char *prefix,
                      uint64_t limit)
{
    struct text *body = &x->response.body;
    char *rows = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&rows, &size);
    uint64_t shown = 0, more = 0;

    for (size_t i = 0; out != NULL && i < view->count; i++) {
        const struct hf_lock_info *info = &view->locks[i].info;

        if (strncmp(info->name, prefix, strlen(prefix)) != 0)
            continue;
        if (shown == limit) {
            more++;
            continue;
        }
        fputs(shown++ > 0 ? ",\n " : "", out);
        cli_lock_json(out, info, CLI_TOKEN_TEXT);
    }
    if (out == NULL || fclose(out) != 0) {
        serve_refuse(x, 500, HF_NOMEM, "out of memory");
    } else {
        x->response.code = 200;
        text_printf(body,
                    "{\"as_of_ms\": %" PRId64 ", \"took_ms\": %" PRId64 ", \"more\": %" PRIu64
                    ", \"locks\": [",
                    view->as_of_ms, view->took_ms, more);
        text_add(body, rows, size);
        text_printf(body, "]}\n");
    }
    free(rows);
}

void serve_locks(struct exchange *x)
{
    struct http_parameter all[HTTP_PARAMETERS_MAX];
    int count = parameters(x, all);
    const char *prefix, *given;
    uint64_t limit = LIMIT_DEFAULT;
    struct listing_view *view;
    struct hf_error err;

    if (count < 0)
        return;
    prefix = parameter(all, count, "prefix");
    prefix = prefix != NULL ? prefix : "";
    given = parameter(all, count, "limit");
    if (given != NULL && (!hf__parse_u64(given, &limit) || limit > LIMIT_MAX)) {
        serve_refuse(x, 400, HF_INVALID, "limit: a number, %d at the most", LIMIT_MAX);
        return;
    }
    if (!serve_may(x, RIGHT_LOOK, prefix))
        return;
    if (serve_listing(x->serve, &view, &err) != HF_OK) {
        serve_fail(x, &err);
        return;
    }
    put_locks(x, view, prefix, limit);
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
        put_locks(x, &view, "", 1);
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
    struct text *body = &x->response.body;
    struct serve *serve = x->serve;
    const char *names[CLI_FEATURES_MAX];
    size_t count = cli_features(hf_store_features(serve->store), names);
    char id[HF_IDENTITY_SIZE];

    identity(serve, id);
    x->response.code = 200;
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

/* One asks, and the others wait for that answer: at most one question a second. */
void serve_readyz(struct exchange *x)
{
    struct readiness *readiness = x->serve->readiness;
    struct hf_error answer;

    pthread_mutex_lock(&readiness->lock);
    if (readiness->asked_ns == 0 || hf__now_ns() - readiness->asked_ns > READY_NS) {
        readiness->answer.code =
            hf_inspect(x->serve->store, "readyz", ignore, NULL, &readiness->answer);
        readiness->asked_ns = hf__now_ns();
    }
    answer = readiness->answer;
    pthread_mutex_unlock(&readiness->lock);
    if (answer.code == HF_OK)
        answer_ok(x, "\"ready\": true");
    else
        serve_fail(x, &answer);
    if (x->response.code != 200)
        x->response.code = 503;
}
