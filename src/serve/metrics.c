/* metrics.c - counters without a lock, and their text for Prometheus.
 *
 * A scrape reads the counters one by one while others count on. Each is right by itself; a
 * histogram's count is added up from its buckets, so that the two agree.
 *
 * There are at most 600 series, whoever asks for what: labels come from lists that are compiled in,
 * and 300 of the series are left for the watched locks. */
#include "serve/metrics.h"

#include "base/base.h"
#include "serve/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REQUEST_SERIES_MAX = 100, /* of holdfast_http_requests_total; what is over is one more */
    BUCKETS = 6,              /* of a request's time, without the one for all */
    WAIT_BUCKETS = 7,         /* of a wait's */
    WAIT_ENDS = 5
};

/* The codes of answers; 0 is any other. */
static const int codes[] = {200, 400, 401, 403, 404, 405, 408, 409, 410,
                            411, 413, 423, 429, 500, 501, 503, 504, 0};
enum { CODES = sizeof codes / sizeof codes[0] };

/* How a wait ends: what is worth a series of its own. */
static const char *const wait_ends[WAIT_ENDS] = {"HF_OK", "HF_BUSY", "HF_CANCELLED", "HF_UNKNOWN",
                                                 "other"};

/* Upper bounds, and how many. */
struct bounds {
    const int64_t *ms;
    size_t count;
};
static const struct bounds of_request = {(const int64_t[]){1, 5, 25, 100, 1000, 5000}, BUCKETS};
static const struct bounds of_wait = {
    (const int64_t[]){100, 1000, 10000, 60000, 300000, 900000, 3600000}, WAIT_BUCKETS};

struct histogram {
    _Atomic uint64_t buckets[WAIT_BUCKETS + 1]; /* not added up */
    _Atomic uint64_t sum_ns;
};

struct metrics {
    struct serve *serve;
    struct watch *watch;
    _Atomic uint64_t requests[OPS][CODES];
    struct histogram took[OPS];
    struct histogram asked[OPS];
    struct histogram waited[WAIT_ENDS];
    _Atomic uint64_t limited[LIMITS];
    _Atomic int64_t last_answer_ms; /* since 1970; 0: none yet */
};

static const char *const op_names[OPS] = {
#define NAME(symbol, text) text,
    SERVE_OPS(NAME)};
static const char *const limit_names[LIMITS] = {SERVE_LIMITS(NAME)};
#undef NAME

static void observe(struct histogram *h, const struct bounds *bounds, int64_t ns);
static void print_head(struct text *out, const char *name, const char *type, const char *help);
static void print_requests(struct metrics *m, struct text *out);
static void print_histograms(struct metrics *m, struct text *out);
static void print_rest(struct metrics *m, struct text *out);

struct metrics *metrics_open(struct serve *serve)
{
    struct metrics *m = calloc(1, sizeof *m);

    if (m == NULL)
        return NULL;
    m->serve = serve;
    m->watch = watch_open(serve, m);
    if (m->watch == NULL) {
        free(m);
        return NULL;
    }
    return m;
}

bool metrics_end(struct metrics *m, int64_t until_ns)
{
    return watch_end(m->watch, until_ns);
}

void metrics_close(struct metrics *m)
{
    if (m == NULL)
        return;
    watch_close(m->watch);
    free(m);
}

void metrics_count(struct metrics *m, enum serve_op op, int code)
{
    size_t i = 0;

    while (codes[i] != code && codes[i] != 0)
        i++;
    m->requests[op][i]++;
}

void metrics_duration(struct metrics *m, enum serve_op op, int64_t ns)
{
    /* What only people and monitoring ask for is one series: there are enough. */
    bool api = op == OP_ACQUIRE || op == OP_RENEW || op == OP_RELEASE || op == OP_LOCKS ||
               op == OP_LOCK || op == OP_STORE;

    observe(&m->took[api ? op : OP_OTHER], &of_request, ns);
}

void metrics_wait(struct metrics *m, enum hf_status status, int64_t ns)
{
    size_t i = 0;

    while (i < WAIT_ENDS - 1 && strcmp(wait_ends[i], hf_status_name(status)) != 0)
        i++;
    observe(&m->waited[i], &of_wait, ns);
    metrics_heard(m, status);
}

void metrics_store(struct metrics *m, enum serve_op op, enum hf_status status, int64_t ns)
{
    observe(&m->asked[op], &of_request, ns);
    metrics_heard(m, status);
}

void metrics_heard(struct metrics *m, enum hf_status status)
{
    /* The others are our own words: cancelled, refused before it was sent, out of memory. */
    if (status == HF_OK || status == HF_BUSY || status == HF_LOST || status == HF_QUARANTINE)
        m->last_answer_ms = hf__wall_us() / 1000;
}

void metrics_limited(struct metrics *m, enum serve_limit limit)
{
    m->limited[limit]++;
}

void metrics_handle(struct exchange *x)
{
    struct metrics *m = x->serve->metrics;
    struct text *out = &x->answer.body;

    print_head(out, "build_info", "gauge", "The version of holdfast, and the kind of its store.");
    text_printf(out, "holdfast_build_info{version=\"%s\",scheme=\"%s\"} 1\n", hf_version(),
                x->serve->scheme);
    print_requests(m, out);
    print_histograms(m, out);
    print_rest(m, out);
    watch_print(m->watch, out);
    x->answer.code = 200;
    x->answer.status = HF_OK;
    x->answer.type = "text/plain; version=0.0.4; charset=utf-8";
}

static void observe(struct histogram *h, const struct bounds *bounds, int64_t ns)
{
    size_t i = 0;

    while (i < bounds->count && ns > hf__ms_to_ns(bounds->ms[i]))
        i++;
    h->buckets[i]++;
    h->sum_ns += ns > 0 ? (uint64_t)ns : 0;
}

static void print_head(struct text *out, const char *name, const char *type, const char *help)
{
    text_printf(out, "# HELP holdfast_%s %s\n# TYPE holdfast_%s %s\n", name, help, name, type);
}

static void print_request(struct text *out, const char *op, int code, uint64_t count)
{
    char status[16] = "other";

    if (code != 0)
        (void)snprintf(status, sizeof status, "%d", code);
    text_printf(out, "holdfast_http_requests_total{op=\"%s\",status=\"%s\"} %" PRIu64 "\n", op,
                status, count);
}

/* Series that are there from the start: of one that begins with 1, nobody sees the increase. */
static bool is_always_told(size_t op, int code)
{
    return (op == OP_ACQUIRE || op == OP_RENEW || op == OP_RELEASE) && code == 504;
}

static void print_requests(struct metrics *m, struct text *out)
{
    size_t printed = 0;
    uint64_t rest = 0;

    print_head(out, "http_requests_total", "counter", "Requests that were answered.");
    for (size_t i = 0; i < (size_t)OPS * CODES; i++) {
        uint64_t count = m->requests[i / CODES][i % CODES];

        if (count == 0 && !is_always_told(i / CODES, codes[i % CODES]))
            continue;
        if (printed < REQUEST_SERIES_MAX && i != (size_t)OPS * CODES - 1) {
            print_request(out, op_names[i / CODES], codes[i % CODES], count);
            printed++;
        } else {
            rest += count;
        }
    }
    if (rest > 0)
        print_request(out, op_names[OP_OTHER], 0, rest);
}

/* A family of histograms: one for each value of a label. */
struct family {
    const char *name, *label;
    const struct bounds *bounds;
    struct histogram *of;
    const char *const *values;
    size_t count;
    const char *help;
};

static void print_one(const struct family *f, size_t which, struct text *out)
{
    struct histogram *h = &f->of[which];
    const char *value = f->values[which];
    uint64_t sum_ns = h->sum_ns;
    uint64_t count = 0;

    for (size_t i = 0; i <= f->bounds->count; i++) {
        char bound[24] = "+Inf";

        count += h->buckets[i];
        if (i < f->bounds->count)
            (void)snprintf(bound, sizeof bound, "%g", (double)f->bounds->ms[i] / 1000);
        text_printf(out, "holdfast_%s_bucket{%s=\"%s\",le=\"%s\"} %" PRIu64 "\n", f->name, f->label,
                    value, bound, count);
    }
    text_printf(out, "holdfast_%s_sum{%s=\"%s\"} %.6f\n", f->name, f->label, value,
                (double)sum_ns / HF__NS_PER_S);
    text_printf(out, "holdfast_%s_count{%s=\"%s\"} %" PRIu64 "\n", f->name, f->label, value, count);
}

static bool is_empty(struct histogram *h)
{
    for (size_t i = 0; i <= WAIT_BUCKETS; i++) {
        if (h->buckets[i] > 0)
            return false;
    }
    return true;
}

static void print_histograms(struct metrics *m, struct text *out)
{
    const struct family families[] = {
        {"http_request_duration_seconds", "op", &of_request, m->took, op_names, OPS,
         "From a request that was read to its answer; waits are left out."},
        {"wait_duration_seconds", "status", &of_wait, m->waited, wait_ends, WAIT_ENDS,
         "How long clients waited for locks, and how that ended."},
        {"store_request_duration_seconds", "op", &of_request, m->asked, op_names, OPS,
         "How long the store took to answer; waits are left out."}};

    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        print_head(out, families[i].name, "histogram", families[i].help);
        for (size_t which = 0; which < families[i].count; which++) {
            if (!is_empty(&families[i].of[which]))
                print_one(&families[i], which, out);
        }
    }
}

static void print_rest(struct metrics *m, struct text *out)
{
    int64_t last_ms = m->last_answer_ms;

    print_head(out, "waiters", "gauge", "Clients that wait for a lock.");
    text_printf(out, "holdfast_waiters %u\n", m->serve->waiters);
    print_head(out, "clients", "gauge", "Connections.");
    text_printf(out, "holdfast_clients %u\n", m->serve->clients);
    print_head(out, "limited_total", "counter", "Clients that were turned away by a limit.");
    for (size_t i = 0; i < LIMITS; i++)
        text_printf(out, "holdfast_limited_total{limit=\"%s\"} %" PRIu64 "\n", limit_names[i],
                    m->limited[i]);
    print_head(out, "store_last_answer_timestamp_seconds", "gauge",
               "When the store answered last.");
    text_printf(out, "holdfast_store_last_answer_timestamp_seconds %" PRId64 ".%03d\n",
                last_ms / 1000, (int)(last_ms % 1000));
}
