/* watch.c - the thread that asks the store for a scrape. */
#include "serve/watch.h"

#include "base/base.h"
#include "serve/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum {
    PERIOD_MS = 5000, /* between the beginnings of two rounds */
    MOMENT_MS = 20,   /* that a scrape waits for a round */
    OLD_MS = 60000    /* what is older is not told */
};

/* What is known of a lock. */
struct watched {
    int64_t at_ns; /* when the store was asked; 0: not known */
    bool held;
    int64_t age_ms; /* < 0: not known */
    uint64_t waiters;
};

struct watch {
    struct serve *serve;
    struct metrics *metrics;
    pthread_t thread;
    pthread_mutex_t mutex; /* for all below */
    pthread_cond_t wanted; /* a round is to begin, or the thread to end */
    pthread_cond_t done;   /* a round is over */
    bool ending;
    bool busy; /* a round is under way, or was asked for */
    int64_t began_ns;
    struct watched locks[SERVE_WATCH_MAX];
};

static void *ask_rounds(void *data);

static bool start(struct watch *w)
{
    pthread_condattr_t attributes;
    bool started;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->wanted, NULL);
    pthread_cond_init(&w->done, &attributes);
    pthread_condattr_destroy(&attributes);
    started = pthread_create(&w->thread, NULL, ask_rounds, w) == 0;
    if (!started) {
        pthread_cond_destroy(&w->done);
        pthread_cond_destroy(&w->wanted);
        pthread_mutex_destroy(&w->mutex);
    }
    return started;
}

struct watch *watch_open(struct serve *serve, struct metrics *metrics)
{
    struct watch *w = calloc(1, sizeof *w);

    if (w == NULL)
        return NULL;
    w->serve = serve;
    w->metrics = metrics;
    w->began_ns = INT64_MIN / 2;
    if (!start(w)) {
        free(w);
        return NULL;
    }
    return w;
}

/* Waits with the mutex held until no round is under way; false: until then it still was. */
static bool wait_for_round(struct watch *w, int64_t budget_ns)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    budget_ns = budget_ns > 0 ? until.tv_nsec + budget_ns : until.tv_nsec;
    until.tv_sec += budget_ns / HF__NS_PER_S;
    until.tv_nsec = budget_ns % HF__NS_PER_S;
    while (w->busy) {
        if (pthread_cond_timedwait(&w->done, &w->mutex, &until) != 0)
            return !w->busy;
    }
    return true;
}

bool watch_end(struct watch *w, int64_t until_ns)
{
    bool ended;

    pthread_mutex_lock(&w->mutex);
    w->ending = true;
    pthread_cond_signal(&w->wanted);
    ended = wait_for_round(w, until_ns - hf__now_ns());
    pthread_mutex_unlock(&w->mutex);
    return ended;
}

void watch_close(struct watch *w)
{
    (void)watch_end(w, 0);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->done);
    pthread_cond_destroy(&w->wanted);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

static bool note(const struct hf_lock_info *info, void *data)
{
    struct watched *lock = data;

    lock->held = info->held;
    lock->age_ms = info->held ? info->age_ms : 0;
    lock->waiters = info->waiters;
    return false;
}

/* Asks about one lock; false: the store does not answer. */
static bool ask(struct watch *w, const char *name, struct watched *out)
{
    int64_t began_ns = hf__now_ns();
    enum hf_status status;
    struct hf_error err;

    *out = (struct watched){.at_ns = began_ns};
    status = hf_inspect(w->serve->store, name, note, out, &err);
    metrics_store(w->metrics, OP_METRICS, status, hf__now_ns() - began_ns);
    if (status != HF_OK)
        out->at_ns = 0;
    return status != HF_UNREACHABLE && status != HF_UNKNOWN;
}

/* The lock that is asked about if none is watched: to hear whether the store answers. */
static const char *const any_lock = "holdfast";

/* One round, with the mutex held, which is left for each question. */
static void ask_all(struct watch *w)
{
    size_t count = w->serve->options.watch_count;
    bool answers = true;

    for (size_t i = 0; answers && !w->ending && i < (count > 0 ? count : 1); i++) {
        const char *name = count > 0 ? w->serve->options.watch[i] : any_lock;
        struct watched found;

        pthread_mutex_unlock(&w->mutex);
        answers = ask(w, name, &found);
        pthread_mutex_lock(&w->mutex);
        w->locks[i] = found;
    }
    for (size_t i = 0; !answers && i < count; i++)
        w->locks[i].at_ns = 0;
}

static void *ask_rounds(void *data)
{
    struct watch *w = data;

    pthread_mutex_lock(&w->mutex);
    for (;;) {
        if (w->busy) {
            ask_all(w);
            w->busy = false;
            pthread_cond_broadcast(&w->done);
        } else if (w->ending) {
            break;
        } else {
            pthread_cond_wait(&w->wanted, &w->mutex);
        }
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

/* Asks for a round if it is time, and waits a moment for one that is under way. */
static void refresh(struct watch *w)
{
    int64_t now_ns = hf__now_ns();

    if (!w->busy && !w->ending && now_ns - w->began_ns >= hf__ms_to_ns(PERIOD_MS)) {
        w->busy = true;
        w->began_ns = now_ns;
        pthread_cond_signal(&w->wanted);
    }
    (void)wait_for_round(w, hf__ms_to_ns(MOMENT_MS));
}

/* The name of a lock as the value of a label. */
static void print_label(struct text *out, const char *name)
{
    for (; *name != '\0'; name++) {
        if (*name == '"' || *name == '\\')
            text_add(out, "\\", 1);
        text_add(out, name, 1);
    }
}

enum figure { HELD, HELD_SECONDS, WAITERS, FIGURES };

static void print_figure(struct watch *w, enum figure figure, const char *name, struct text *out)
{
    int64_t oldest_ns = hf__now_ns() - hf__ms_to_ns(OLD_MS);

    for (size_t i = 0; i < w->serve->options.watch_count; i++) {
        const struct watched *lock = &w->locks[i];

        if (lock->at_ns == 0 || lock->at_ns < oldest_ns ||
            (figure == HELD_SECONDS && lock->age_ms < 0))
            continue;
        text_printf(out, "holdfast_%s{lock=\"", name);
        print_label(out, w->serve->options.watch[i]);
        if (figure == HELD_SECONDS)
            text_printf(out, "\"} %" PRId64 ".%03d\n", lock->age_ms / 1000,
                        (int)(lock->age_ms % 1000));
        else
            text_printf(out, "\"} %" PRIu64 "\n", figure == HELD ? lock->held : lock->waiters);
    }
}

void watch_print(struct watch *w, struct text *out)
{
    static const struct {
        const char *name, *help;
    } figures[FIGURES] = {
        [HELD] = {"lock_held", "1 if the watched lock is held."},
        [HELD_SECONDS] = {"lock_held_seconds", "For how long; 0 if it is not."},
        [WAITERS] = {"lock_waiters", "Clients that wait for it."},
    };

    pthread_mutex_lock(&w->mutex);
    refresh(w);
    for (size_t i = 0; i < FIGURES; i++) {
        text_printf(out, "# HELP holdfast_%s %s\n# TYPE holdfast_%s gauge\n", figures[i].name,
                    figures[i].help, figures[i].name);
        print_figure(w, (enum figure)i, figures[i].name, out);
    }
    pthread_mutex_unlock(&w->mutex);
}
