/* addon.c - libholdfast for Node: calls on threads of their own, never on libuv's. index.js gives it
 * words, promises and errors.
 * A server near by answers sooner than two threads are woken: so the thread of the event loop sends
 * what it can, looks for the answer for a moment, and leaves the rest to another thread. libuv's
 * poller hears of threads that are done, and of leases that are lost.
 * Each environment (the main thread, each worker) has its own of everything.
 * Where Node itself ends without memory, so does this. */
#define NAPI_VERSION 8
#include <holdfast/begin.h>
#include <holdfast/elect.h>
#include <holdfast/once.h>
#include <holdfast/record.h>
#include <holdfast/several.h>
#include <node_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

enum { LOOK_US = 100 }; /* how long the event loop stands still for an answer at the most */

/* Calls for a thread; from LOCK to RELEASE the event loop makes them where none can be had, from
 * ONCE on always. The same numbers stand in index.js. */
enum { OPEN, ANY, ALL, LIST, LEADER, BREAK, LOCK, BEGIN, END, CLOSE, RELEASE, RENEW, PUT };
enum { ONCE = PUT + 1, LOOK, WATCH, CANCEL, EXIT };

/* A call; then what it opened, if it did: index.js has the address. */
struct job {
    double op, id, handle, n[9]; /* as index.js gives them */
    struct job *next, *in;       /* in, or lease: what it is about, by its handle */
    struct hf_lease *lease;
    struct addon *addon;
    struct hf_store *store;
    struct hf_once *once;
    int cancel_fd;
    struct hf_call *call;  /* LOCK, RELEASE: it was begun */
    pthread_t thread;      /* 0: there is none */
    napi_deferred promise; /* a worker that is being terminated gets none */
    atomic_bool done;      /* by the thread */
    enum hf_loss loss;
    struct hf_error err;
    char *reply, *data; /* rows; what follows the first word */
    size_t reply_len, data_len, count;
    const char *words[HF_SEVERAL_MAX + 2]; /* a label, and names: one too many, and it is refused */
    char text[];                           /* they are in here, a NUL between them */
};

/* For the thread of the event loop alone, but done_fd. */
struct addon {
    uv_poll_t poll;        /* first: its address is the addon's. Of epoll_fd, */
    int epoll_fd, done_fd; /* which is of done_fd, written by threads, and of leases */
    napi_env env;          /* NULL: nothing is begun any more */
    napi_ref exports;
    struct job *jobs;
};

static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

/* A row of a reply: numbers, a text, bytes; and padding, so that the next one is aligned. */
struct row {
    int64_t n[4];
    size_t text_len, data_len;
};

static void add(struct job *job, struct row row, const char *text, const void *data)
{
    size_t len = sizeof row + (row.text_len = strlen(text)) + row.data_len;
    char *end = job->reply = must(realloc(job->reply, job->reply_len + len + 7));

    end = mempcpy(end + job->reply_len, &row, sizeof row);
    memcpy(mempcpy(end, text, row.text_len), data, row.data_len);
    job->reply_len += (len + 7) & ~(size_t)7;
}

static bool add_record(const struct hf_record *r, void *job)
{
    struct row row = {{r->token, r->number, r->written_ms, r->until_ms}, 0, r->value_len};

    add(job, row, r->key, r->value);
    return true;
}

static void add_leader(const struct hf_leader *l, void *job)
{
    struct row row = {{l->term, l->age_ms, l->remaining_ms}, 0, strlen(l->address)};

    add(job, row, l->label, l->address);
}

static enum hf_status open_store(struct job *job)
{
    struct hf_open_options options = {sizeof options, job->n[1], .cancel_fd = job->cancel_fd};
    enum hf_status status = hf_open_waiting(job->words[0], &options, &job->store, &job->err);

    if (status == HF_OK)
        add(job, (struct row){.n = {(intptr_t)job}}, hf_store_url(job->store), "");
    return status;
}

/* It leaves the list. */
static struct job *drop(struct job *job)
{
    struct job **at = &job->addon->jobs;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    return job;
}

/* With what is open in it. A child that was just forked may have the descriptor of a lent lease for
 * another moment: nobody must hear of that. */
static void discard(struct job *job)
{
    struct hf_lease *lent = job->once != NULL ? hf_once_lease(job->once) : NULL;

    if (lent != NULL)
        (void)epoll_ctl(job->addon->epoll_fd, EPOLL_CTL_DEL, hf_lease_fd(lent), NULL);
    hf_once_close(job->once);
    hf_close(job->store);
    if (job->cancel_fd > 0)
        (void)close(job->cancel_fd);
    free(job->reply);
    free(job);
}

static enum hf_status shut(struct job *job)
{
    discard(job->in);
    return HF_OK;
}

static struct hf_acquire_options options_of(const struct job *job)
{
    struct hf_acquire_options o = {sizeof o, job->n[0], job->n[1], job->words[0], job->cancel_fd};

    o.no_keeper = job->n[2] != 0;
    o.spread = job->n[3] != 0;
    return o;
}

static enum hf_status acquire(struct job *job)
{
    struct hf_lease *got[HF_SEVERAL_MAX + 1] = {NULL};
    struct hf_acquire_options o = options_of(job);
    const char *const *names = job->words + 1;
    size_t count = job->count - 1, which;
    enum hf_status status =
        job->op == ALL   ? hf_acquire_all(job->in->store, names, count, &o, got, &job->err)
        : job->op == ANY ? hf_acquire_any(job->in->store, names, count, &o, got, &which, &job->err)
                         : hf_end_acquire(job->call, got, &job->err);

    for (size_t i = 0; i < count && got[i] != NULL; i++)
        add(job, (struct row){.n = {(intptr_t)got[i], hf_lease_token(got[i])}},
            hf_lease_name(got[i]), "");
    return status;
}

static enum hf_status open_once(struct job *job)
{
    const char *const *w = job->words;
    const double *n = job->n;
    /* In the order of its fields. */
    struct hf_once_options o = {
        sizeof o,       n[0], w[1], w[2], n[1], n[2], n[3], n[4], (int64_t)n[5], n[6] != 0, n[7],
        job->cancel_fd, n[8], w[3], NULL, NULL, NULL, NULL, 0};

    add(job, (struct row){.n = {(intptr_t)job}}, "", "");
    return hf_once_open(job->in->store, w[0], &o, &job->once, &job->err);
}

/* Rows of a turn: what it is about, with a sentence, and what is on record if anything is. */
static enum hf_status begin_turn(struct job *job)
{
    struct hf_once *once = job->in->once;
    enum hf_status status = hf_once_begin(once, &job->err);
    const struct hf_once_record *r = hf_once_on_record(once);
    struct hf_lease *lease = hf_once_lease(once);
    const char *text = hf_once_text(once);
    uint64_t token = lease != NULL ? hf_lease_token(lease) : 0;
    struct row row = {{hf_once_outcome(once), (intptr_t)lease, token}, 0, strlen(text)};

    add(job, row, hf_once_slot(once), text);
    if (r != NULL)
        add(job, (struct row){{r->token, r->since_ms}, 0, r->output_len}, r->by, r->output);
    return status;
}

static enum hf_status end_turn(struct job *job)
{
    enum hf_status status =
        hf_once_end(job->in->once, (enum hf_once_ending)job->n[0], job->n[0] != HF_ONCE_END_SUCCESS,
                    job->data, job->data_len, &job->err);

    add(job, (struct row){.n = {hf_once_outcome(job->in->once)}}, "", "");
    return status;
}

static enum hf_status list(struct job *job)
{
    return hf_record_list(job->in->store, job->words[0], job->words[1], add_record, job, &job->err);
}

static enum hf_status leader(struct job *job)
{
    return hf_leader(job->in->store, job->words[0], add_leader, job, &job->err);
}

static enum hf_status break_hold(struct job *job)
{
    struct hf_break_options how = {sizeof how, NULL, job->words[1], job->n[0] != 0};
    uint64_t token = strtoull(job->words[2], NULL, 10);

    return hf_break(job->in->store, job->words[0], token, &how, NULL, &job->err);
}

static enum hf_status release(struct job *job)
{
    return hf_end_release(job->call, &job->err);
}

static enum hf_status renew(struct job *job)
{
    return hf_renew(job->lease, (uint32_t)job->n[0], &job->err);
}

static enum hf_status put(struct job *job)
{
    return hf_record_put(job->lease, job->words[0], job->data, job->data_len, job->n[0], &job->err);
}

/* And once it is lost, the library's words for that. */
static enum hf_status look(struct job *job)
{
    add(job, (struct row){.n = {hf_lease_remaining_ms(job->lease)}}, "", "");
    return hf_lease_loss(job->lease) == HF_LOSS_NONE ? HF_OK : renew(job);
}

/* index.js is to hear of its loss, until the library closes the descriptor with the lease. */
static enum hf_status watch(struct job *job)
{
    struct epoll_event event = {EPOLLIN | EPOLLET, {.ptr = job->lease}};
    int fd = hf_lease_fd(job->lease);

    return epoll_ctl(job->addon->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? HF_OK : HF_NOMEM;
}

/* The call with that number ends soon, if it has not ended yet. 0: every call. */
static enum hf_status cancel(struct job *job)
{
    for (struct job *each = job->addon->jobs; each != NULL; each = each->next)
        if (each->cancel_fd > 0 && (job->id == 0 || job->id == each->id))
            (void)eventfd_write(each->cancel_fd, 1);
    return HF_OK;
}

/* Its thread is gone. */
static void finish(struct job *job)
{
    if (job->thread != 0)
        (void)pthread_join(job->thread, NULL);
    job->thread = 0;
}

/* Waits are over, threads gone, and what is held is released. Nothing is begun any more. */
static enum hf_status end(struct job *every)
{
    every->addon->env = NULL;
    (void)cancel(every);
    for (struct job *job = every->addon->jobs; job != NULL; job = job->next)
        finish(job);
    for (struct job *job = every->addon->jobs; job != NULL; job = job->next) {
        hf_close(job->store);
        job->store = NULL;
    }
    return HF_OK;
}

/* The last row of the reply tells how the call ended. */
static void do_job(struct job *job)
{
    static enum hf_status (*const acts[])(struct job *) = {
        open_store, acquire, acquire, list, leader,    break_hold, acquire, begin_turn, end_turn,
        shut,       release, renew,   put,  open_once, look,       watch,   cancel,     end};
    enum hf_status status = acts[(int)job->op](job);

    if (status == HF_LOST && job->op >= RENEW) /* about a lease */
        job->loss = hf_lease_loss(job->lease);
    add(job, (struct row){.n = {status, job->loss, job->err.retry_after_ms}}, job->err.text, "");
}

/* A thread. */
static void *run(void *data)
{
    struct job *job = data;

    do_job(job);
    atomic_store(&job->done, true);
    (void)eventfd_write(job->addon->done_fd, 1);
    return NULL;
}

/* What the event loop does of it first. True: the rest does not take long. */
static bool begin(struct job *job)
{
    struct hf_acquire_options o = options_of(job);

    if (job->op == LOCK)
        job->call = must(hf_begin_acquire(job->in->store, job->words[1], &o));
    if (job->op == CLOSE)
        (void)drop(job->in);
    if (job->op == RELEASE) {
        job->loss = hf_lease_loss(job->lease);
        job->call = must(hf_begin_release(job->lease));
    }
    return job->op >= ONCE || (job->call != NULL && hf_call_answered(job->call, LOOK_US));
}

/* Of call(numbers, text). */
static struct job *read_job(napi_env env, struct addon *addon, const napi_value args[2])
{
    struct job *job;
    size_t count, len;
    void *numbers, *text;

    napi_get_typedarray_info(env, args[0], NULL, &count, &numbers, NULL, NULL);
    napi_get_buffer_info(env, args[1], &text, &len);
    job = must(calloc(1, sizeof *job + len + 1));
    memcpy(job, numbers, count * sizeof(double));
    memcpy(job->text, text, len);
    job->in = (void *)(intptr_t)job->handle;
    job->lease = (void *)job->in;
    job->addon = addon;
    job->next = addon->jobs;
    addon->jobs = job;
    for (char *word = job->text; word <= job->text + len && job->count < HF_SEVERAL_MAX + 2;) {
        job->words[job->count++] = *word != 0 ? word : NULL;
        word += strlen(word) + 1;
    }
    job->data = job->text + strlen(job->text) + 1;
    job->data_len = job->text + len - job->data;
    while (job->cancel_fd == 0 && (job->op == ONCE || job->n[1] != 0))
        job->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); /* 0 would mean none */
    return job;
}

/* That is the end of a job, unless something is open in it. Without a row it was not done. */
static napi_value reply_of(napi_env env, struct job *job)
{
    napi_value reply = NULL;

    napi_create_buffer_copy(env, job->reply_len, job->reply, NULL, &reply);
    if (job->store == NULL && job->once == NULL)
        discard(drop(job));
    return reply;
}

/* The reply if it is there at once, or a promise. */
static napi_value start(napi_env env, napi_callback_info info)
{
    napi_value args[2], promise = NULL;
    size_t count = 2;
    struct addon *addon;
    struct job *job;

    napi_get_cb_info(env, info, &count, args, NULL, (void **)&addon);
    job = read_job(env, addon, args);
    if (job->cancel_fd < 0 || (addon->env == NULL && job->op <= ONCE))
        return reply_of(env, job);
    if (begin(job)) {
        do_job(job);
    } else if (pthread_create(&job->thread, NULL, run, job) == 0) {
        uv_ref((uv_handle_t *)&addon->poll);
        napi_create_promise(env, &job->promise, &promise);
        return promise;
    } else if (job->op >= LOCK && job->op <= RELEASE) {
        (void)cancel(job);
        do_job(job);
    }
    return reply_of(env, job);
}

/* Calls heard(), with the address of a lease that is lost, and keeps the promises of threads that
 * are done. What follows from it runs later. */
static void hear(uv_poll_t *poll, int status, int events)
{
    struct addon *addon = (struct addon *)poll;
    struct epoll_event found[16];
    int count = epoll_wait(addon->epoll_fd, found, 16, 0);
    napi_handle_scope scope;
    napi_value exports, heard, handle;

    (void)status, (void)events;
    uv_unref((uv_handle_t *)poll);
    napi_open_handle_scope(addon->env, &scope);
    napi_get_reference_value(addon->env, addon->exports, &exports);
    napi_get_named_property(addon->env, exports, "heard", &heard);
    while (count-- > 0) {
        napi_create_int64(addon->env, (intptr_t)found[count].data.ptr, &handle);
        napi_call_function(addon->env, exports, heard, 1, &handle, NULL);
    }
    for (struct job *job = addon->jobs, *next; job != NULL; job = next) {
        next = job->next;
        if (atomic_exchange(&job->done, false)) {
            napi_deferred promise = job->promise;

            finish(job);
            napi_resolve_deferred(addon->env, promise, reply_of(addon->env, job));
        } else if (job->thread != 0) {
            uv_ref((uv_handle_t *)poll);
        }
    }
    napi_close_handle_scope(addon->env, scope);
}

static void closed(uv_handle_t *poll)
{
    struct addon *addon = (struct addon *)poll;

    (void)close(addon->epoll_fd);
    (void)close(addon->done_fd);
    napi_remove_async_cleanup_hook(poll->data);
    free(addon);
}

static void tear_down(napi_async_cleanup_hook_handle hook, void *data)
{
    struct addon *addon = data;
    struct epoll_event lost; /* leases that are watched: now all of them are lost */

    (void)end(&(struct job){.addon = addon});
    while (addon->jobs != NULL)
        discard(drop(addon->jobs));
    while (epoll_wait(addon->epoll_fd, &lost, 1, 0) > 0)
        hf_leave(lost.data.ptr);
    addon->poll.data = hook;
    uv_close((uv_handle_t *)&addon->poll, closed);
}

NAPI_MODULE_INIT(/* napi_env env, napi_value exports */)
{
    struct addon *addon = must(calloc(1, sizeof *addon));
    struct epoll_event done = {EPOLLIN | EPOLLET, {.ptr = NULL}};
    napi_value value;
    uv_loop_t *loop;

    addon->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    addon->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    napi_get_uv_event_loop(env, &loop);
    if (epoll_ctl(addon->epoll_fd, EPOLL_CTL_ADD, addon->done_fd, &done) == 0 &&
        uv_poll_init(loop, &addon->poll, addon->epoll_fd) == 0) {
        addon->env = env;
        uv_poll_start(&addon->poll, UV_READABLE, hear);
        uv_unref((uv_handle_t *)&addon->poll);
        napi_add_async_cleanup_hook(env, tear_down, addon, NULL);
    }
    napi_create_string_utf8(env, hf_version(), NAPI_AUTO_LENGTH, &value);
    napi_set_named_property(env, exports, "version", value);
    napi_create_function(env, "call", NAPI_AUTO_LENGTH, start, addon, &value);
    napi_set_named_property(env, exports, "call", value);
    napi_create_reference(env, exports, 1, &addon->exports);
    return exports;
}
