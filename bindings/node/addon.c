/* addon.c - libholdfast for Node: calls on threads of their own, never on libuv's, and one descriptor
 * on libuv's poller that tells of leases that are lost. index.js gives it words, promises and errors.
 * A server near by answers sooner than two threads are woken: so the thread of the event loop sends
 * what it can, looks for the answer for a moment, and leaves the rest to another thread.
 * Each environment (the main thread, each worker) has its own of everything.
 * Where Node itself ends without memory, so does this. */
#define NAPI_VERSION 8
#include <holdfast.h>
#include <holdfast/begin.h>
#include <holdfast/elect.h>
#include <holdfast/once.h>
#include <holdfast/record.h>
#include <holdfast/several.h>
#include <node_api.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#define LOOK_US   100 /* how long the event loop stands still for an answer at the most, */
#define LOOKS_MAX 20  /* and how often before it goes round */

/* What a thread does, what is done at once, and the rest. The same numbers stand in index.js. */
enum op {
    OPEN,
    CLOSE,
    LOCK,
    ANY,
    ALL,
    LIST,
    LEADER,
    BREAK,
    ONCE,
    BEGIN,
    END,
    SHUT,
    RELEASE,
    RENEW,
    PUT
};
enum { LOOK = PUT + 1, WATCH, CANCEL, EXIT, LOSS };

struct job {
    struct job *next;
    struct addon *addon;
    int64_t op, id, numbers[3];
    void *handle, *data;
    struct hf_acquire_options options;
    struct hf_call *call; /* LOCK, RELEASE: it was begun */
    enum hf_loss loss;
    int cancel_fd;
    char *end, *reply; /* end: of the words; reply: rows */
    size_t data_len, reply_len;
    struct hf_error err;
    char words[]; /* each with its NUL */
};

/* For the thread of the event loop alone. */
struct addon {
    napi_threadsafe_function tell; /* index.js, of jobs that are done */
    napi_ref exports;
    napi_async_cleanup_hook_handle hook;
    struct job *jobs; /* that it was not told of yet: the process lives while there are any */
    struct hf_store **stores; /* open ones; NULL where one was closed */
    size_t slots;
    uv_poll_t lost; /* of lost_fd: an epoll of the descriptors of leases */
    int lost_fd;
    bool ended;
    unsigned looks, threads; /* looks: since the event loop went round; threads: not yet known as */
    sem_t gone;
};

static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

/* A row of a reply: numbers, a text, bytes. */
struct row {
    int64_t n[4];
    size_t text_len, data_len;
};

static void add(struct job *job, struct row row, const char *text, const void *data)
{
    size_t len = sizeof row + (row.text_len = strlen(text)) + row.data_len;
    char *end = job->reply = must(realloc(job->reply, job->reply_len + len));

    end = mempcpy(end + job->reply_len, &row, sizeof row);
    memcpy(mempcpy(end, text, row.text_len), data, row.data_len);
    job->reply_len += len;
}

static bool add_record(const struct hf_record *r, void *job)
{
    struct row row = {
        {(int64_t)r->token, (int64_t)r->number, r->written_ms, r->until_ms}, 0, r->value_len};

    add(job, row, r->key, r->value);
    return true;
}

static void add_leader(const struct hf_leader *l, void *job)
{
    struct row row = {{(int64_t)l->term, l->age_ms, l->remaining_ms}, 0, strlen(l->address)};

    add(job, row, l->label, l->address);
}

/* What was open as from is now to: NULL means a place that is free. */
static void replace_store(struct addon *addon, struct hf_store *from, struct hf_store *to)
{
    size_t at = 0;

    while (at < addon->slots && addon->stores[at] != from)
        at++;
    if (at == addon->slots)
        addon->stores = must(realloc(addon->stores, ++addon->slots * sizeof *addon->stores));
    addon->stores[at] = to;
}

static enum hf_status open_store(struct job *job)
{
    struct hf_open_options options = {sizeof options, job->numbers[0], .cancel_fd = job->cancel_fd};
    struct hf_store *store;
    enum hf_status status = hf_open_waiting(job->words, &options, &store, &job->err);

    job->handle = store;
    if (store != NULL)
        add(job, (struct row){.n = {(intptr_t)store}}, hf_store_url(store), "");
    return status;
}

/* The words are a label, and names. */
static enum hf_status acquire(struct job *job)
{
    const char *names[HF_SEVERAL_MAX + 1], *name = job->words; /* one too many, and it is refused */
    struct hf_lease *got[HF_SEVERAL_MAX + 1] = {NULL};
    size_t count = 0, which;
    enum hf_status status;

    while ((name += strlen(name) + 1) <= job->end && count <= HF_SEVERAL_MAX)
        names[count++] = name;
    if (job->op == ALL)
        status = hf_acquire_all(job->handle, names, count, &job->options, got, &job->err);
    else if (job->op == ANY)
        status = hf_acquire_any(job->handle, names, count, &job->options, got, &which, &job->err);
    else
        status = hf_end_acquire(job->call, got, &job->err);
    for (size_t i = 0; i < count && got[i] != NULL; i++)
        add(job, (struct row){.n = {(intptr_t)got[i], (int64_t)hf_lease_token(got[i])}},
            hf_lease_name(got[i]), "");
    return status;
}

/* Rows of a turn: what it is about, a sentence, and what is on record if anything is. fd: cancels. */
static enum hf_status begin_turn(struct job *job, struct hf_once *once, int fd)
{
    enum hf_status status = hf_once_begin(once, &job->err);
    const struct hf_once_record *r = hf_once_on_record(once);
    struct hf_lease *lease = hf_once_lease(once);

    add(job, (struct row){.n = {(intptr_t)once, fd, hf_once_outcome(once), (intptr_t)lease}},
        hf_once_slot(once), "");
    add(job, (struct row){.n = {lease != NULL ? (int64_t)hf_lease_token(lease) : 0}},
        hf_once_text(once), "");
    if (r != NULL)
        add(job,
            (struct row){
                {(int64_t)r->token, r->since_ms, r->took_ms, (int64_t)r->code}, 0, r->output_len},
            r->by, r->output);
    return status;
}

static enum hf_status shut(struct hf_once *once, int fd)
{
    hf_once_close(once);
    (void)close(fd);
    return HF_OK;
}

/* The words are a key, at, tz and a label; the data are the numbers of the options. */
static enum hf_status open_once(struct job *job)
{
    const char *at = strchr(job->words, 0) + 1, *tz = strchr(at, 0) + 1, *label = strchr(tz, 0) + 1;
    const int64_t *n = job->data;
    struct hf_once_options options = {.size = sizeof options,
                                      .per_ms = n[0],
                                      .at = *at != 0 ? at : NULL,
                                      .tz = *tz != 0 ? tz : NULL,
                                      .slack_ms = n[1],
                                      .start_by_ms = n[2],
                                      .keep_ms = n[3],
                                      .retry_after_ms = n[4],
                                      .retries = (uint32_t)n[5],
                                      .hold_crashed = n[6] != 0,
                                      .ttl_ms = (uint32_t)n[7],
                                      .cancel_fd = dup(job->cancel_fd),
                                      .wait_ms = n[8],
                                      .label = *label != 0 ? label : NULL};
    struct hf_once *once;
    enum hf_status status = hf_once_open(job->handle, job->words, &options, &once, &job->err);

    if (status == HF_OK)
        status = begin_turn(job, once, options.cancel_fd);
    if (status != HF_OK)
        (void)shut(once, options.cancel_fd);
    return status;
}

static enum hf_status end_turn(struct job *job)
{
    enum hf_once_ending ending = (enum hf_once_ending)job->numbers[0];
    enum hf_status status = hf_once_end(job->handle, ending, ending != HF_ONCE_END_SUCCESS,
                                        job->data, job->data_len, &job->err);

    add(job, (struct row){.n = {hf_once_outcome(job->handle)}}, "", "");
    return status;
}

/* The call with that number ends soon, if it has not ended yet. 0: every call. */
static enum hf_status cancel(struct addon *addon, int64_t id)
{
    for (struct job *job = addon->jobs; job != NULL; job = job->next)
        if (job->cancel_fd > 0 && (id == 0 || job->id == id))
            (void)eventfd_write(job->cancel_fd, 1);
    return HF_OK;
}

/* Waits are over, threads gone, and what is held is released. Nothing is begun any more. */
static enum hf_status end(struct addon *addon)
{
    (void)cancel(addon, 0);
    addon->ended = true;
    while (addon->threads > 0)
        if (sem_wait(&addon->gone) == 0)
            addon->threads--;
    for (struct job *job = addon->jobs; job != NULL; job = job->next)
        if (job->op == OPEN)
            replace_store(addon, NULL, job->handle);
    while (addon->slots > 0)
        hf_close(addon->stores[--addon->slots]);
    return HF_OK;
}

static enum hf_status call(struct job *job)
{
    const char *name = job->words, *second = name + strlen(name) + 1;
    struct hf_break_options how = {sizeof how, NULL, second, job->numbers[0] != 0};
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = (uint64_t)job->id};
    struct hf_error *err = &job->err;

    switch (job->op) {
    case OPEN:
        return open_store(job);
    case CLOSE:
        hf_close(job->handle);
        return HF_OK;
    case LIST:
        return hf_record_list(job->handle, name, second, add_record, job, err);
    case LEADER:
        return hf_leader(job->handle, name, add_leader, job, err);
    case BREAK:
        return hf_break(job->handle, name, (uint64_t)job->numbers[2], &how, NULL, err);
    case ONCE:
        return open_once(job);
    case BEGIN:
        return begin_turn(job, job->handle, (int)job->numbers[0]);
    case END:
        return end_turn(job);
    case SHUT:
        return shut(job->handle, (int)job->numbers[0]);
    case RELEASE:
        return hf_end_release(job->call, err);
    case RENEW:
        return hf_renew(job->handle, (uint32_t)job->numbers[0], err);
    case PUT:
        return hf_record_put(job->handle, name, job->data, job->data_len, job->numbers[0], err);
    case LOOK: /* and once it is lost, the library's words for that */
        add(job, (struct row){.n = {hf_lease_remaining_ms(job->handle)}}, "", "");
        return hf_lease_loss(job->handle) == HF_LOSS_NONE ? HF_OK : hf_renew(job->handle, 0, err);
    case WATCH: /* index.js hears that number when it is lost. That ends with the lease. */
        return epoll_ctl(job->addon->lost_fd, EPOLL_CTL_ADD, hf_lease_fd(job->handle), &event) == 0
                   ? HF_OK
                   : HF_NOMEM;
    case CANCEL:
        return cancel(job->addon, job->id);
    case EXIT:
        return end(job->addon);
    default:
        return acquire(job);
    }
}

/* The last row of the reply tells how the call ended. */
static void do_job(struct job *job)
{
    enum hf_status status = call(job);

    if (status == HF_LOST && job->op >= RENEW && job->op <= LOOK) /* about a lease */
        job->loss = hf_lease_loss(job->handle);
    add(job, (struct row){.n = {status, job->loss, job->err.retry_after_ms}}, job->err.text, "");
}

/* A thread. */
static void *run(void *job)
{
    struct addon *addon = ((struct job *)job)->addon;

    do_job(job);
    (void)napi_call_threadsafe_function(addon->tell, job, napi_tsfn_nonblocking);
    (void)sem_post(&addon->gone);
    return NULL;
}

/* False: no thread can be had. */
static bool hand_over(struct addon *addon, struct job *job)
{
    pthread_t thread;

    while (addon->threads > 0 && sem_trywait(&addon->gone) == 0)
        addon->threads--;
    if (addon->ended || job->cancel_fd < 0 || pthread_create(&thread, NULL, run, job) != 0)
        return false;
    (void)pthread_detach(thread);
    addon->threads++;
    return true;
}

static void discard(struct job *job)
{
    if (job->cancel_fd > 0)
        (void)close(job->cancel_fd);
    free(job->data);
    free(job->reply);
    free(job);
}

/* An array of rows, and each of them an array. */
static napi_value reply_of(napi_env env, const struct job *job)
{
    napi_value reply, cells, cell;
    struct row row;

    napi_create_array(env, &reply);
    for (size_t at = 0, n = 0; at < job->reply_len; at += row.text_len + row.data_len) {
        memcpy(&row, job->reply + at, sizeof row);
        at += sizeof row;
        napi_create_array_with_length(env, 6, &cells);
        for (uint32_t i = 0; i < 4; i++) {
            napi_create_bigint_int64(env, row.n[i], &cell);
            napi_set_element(env, cells, i, cell);
        }
        napi_create_string_utf8(env, job->reply + at, row.text_len, &cell);
        napi_set_element(env, cells, 4, cell);
        napi_create_string_latin1(env, job->reply + at + row.text_len, row.data_len, &cell);
        napi_set_element(env, cells, 5, cell);
        napi_set_element(env, reply, (uint32_t)n++, cells);
    }
    return reply;
}

/* Calls exports.heard(id, reply), unless the environment has ended. */
static void tell(napi_env env, napi_value none, void *context, void *data)
{
    struct addon *addon = context;
    struct job *job = data, **at;
    napi_value exports, heard, args[2];

    (void)none;
    if (env != NULL) {
        addon->looks = 0;
        for (at = &addon->jobs; *at != NULL && *at != job;)
            at = &(*at)->next;
        if (*at == job && (*at = job->next) == NULL && addon->jobs == NULL)
            napi_unref_threadsafe_function(env, addon->tell);
        if (job->op == OPEN && job->handle != NULL)
            replace_store(addon, NULL, job->handle);
        napi_create_int64(env, job->id, &args[0]);
        args[1] = reply_of(env, job);
        napi_get_reference_value(env, addon->exports, &exports);
        napi_get_named_property(env, exports, "heard", &heard);
        napi_call_function(env, exports, heard, 2, args, NULL);
    }
    discard(job);
}

/* Leases that are watched were lost. */
static void hear_losses(uv_poll_t *poll, int status, int events)
{
    struct epoll_event found[16];
    struct addon *addon = poll->data;
    int count = epoll_wait(addon->lost_fd, found, 16, 0);

    (void)status, (void)events;
    for (int i = 0; i < count; i++) {
        struct job *job = must(calloc(1, sizeof *job));

        *job = (struct job){.addon = addon, .op = LOSS, .id = (int64_t)found[i].data.u64};
        (void)napi_call_threadsafe_function(addon->tell, job, napi_tsfn_nonblocking);
    }
}

/* Begins what can be. True: it is done, too. */
static bool begin(struct addon *addon, struct job *job)
{
    if (addon->ended || job->cancel_fd < 0)
        return false;
    if (job->op == LOCK)
        job->call = must(hf_begin_acquire(job->handle, strchr(job->words, 0) + 1, &job->options));
    if (job->op == RELEASE) {
        job->loss = hf_lease_loss(job->handle);
        job->call = must(hf_begin_release(job->handle));
    }
    if (job->call == NULL || ++addon->looks > LOOKS_MAX || !hf_call_answered(job->call, LOOK_US))
        return false;
    do_job(job);
    return true;
}

/* By the event loop, which hears of it from a thread or, so that it goes round, from here. */
static void go_round(napi_env env, struct addon *addon, struct job *job)
{
    if (job->op == CLOSE)
        replace_store(addon, job->handle, NULL);
    napi_ref_threadsafe_function(env, addon->tell);
    job->next = addon->jobs;
    addon->jobs = job;
    if (job->reply == NULL && hand_over(addon, job))
        return;
    if (job->reply == NULL && job->call != NULL && cancel(addon, job->id) == HF_OK)
        do_job(job); /* it has to be ended, and nobody else can */
    /* Without a reply if there is no thread. */
    (void)napi_call_threadsafe_function(addon->tell, job, napi_tsfn_nonblocking);
}

static struct job *read_job(napi_env env, struct addon *addon, const napi_value args[8])
{
    struct job *job;
    int64_t first[6] = {0};
    size_t len;
    void *data;
    bool whole;

    for (int i = 0; i < 6; i++)
        if (napi_get_value_int64(env, args[i], &first[i]) != napi_ok)
            napi_get_value_bigint_int64(env, args[i], &first[i], &whole);
    napi_get_value_string_utf8(env, args[6], NULL, 0, &len);
    job = must(calloc(1, sizeof *job + len + 2)); /* the words end with two NULs */
    *job = (struct job){.addon = addon,
                        .op = first[0],
                        .id = first[1],
                        .handle = (void *)(intptr_t)first[2],
                        .numbers = {first[3], first[4], first[5]}};
    napi_get_value_string_utf8(env, args[6], job->words, len + 1, &len);
    job->end = job->words + len;
    if (napi_get_buffer_info(env, args[7], &data, &job->data_len) == napi_ok) {
        job->data = must(malloc(job->data_len + 1));
        memcpy(job->data, data, job->data_len);
    }
    if (job->op == BEGIN)
        job->cancel_fd = dup((int)job->numbers[0]);
    while (job->cancel_fd == 0 && job->op < LOOK && (job->op == OPEN || job->numbers[1] != 0))
        job->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); /* 0 would mean none */
    job->options = (struct hf_acquire_options){.size = sizeof job->options,
                                               .ttl_ms = (uint32_t)job->numbers[0],
                                               .wait_ms = job->numbers[1],
                                               .label = *job->words != 0 ? job->words : NULL,
                                               .cancel_fd = job->cancel_fd,
                                               .no_keeper = (job->numbers[2] & 1) != 0,
                                               .spread = (job->numbers[2] & 2) != 0};
    return job;
}

/* call(op, id, handle, three numbers, words, data): the reply if it is done at once, else heard()
 * gets it. */
static napi_value start(napi_env env, napi_callback_info info)
{
    napi_value args[8], reply;
    size_t count = 8;
    struct addon *addon;
    struct job *job;

    napi_get_cb_info(env, info, &count, args, NULL, (void **)&addon);
    job = read_job(env, addon, args);
    if (job->op >= LOOK) {
        do_job(job);
    } else if (!begin(addon, job) || addon->looks == LOOKS_MAX) {
        go_round(env, addon, job);
        return NULL;
    }
    reply = reply_of(env, job);
    discard(job);
    return reply;
}

static void torn_down(uv_handle_t *handle)
{
    struct addon *addon = handle->data;

    (void)close(addon->lost_fd);
    napi_remove_async_cleanup_hook(addon->hook);
    free(addon->stores);
    free(addon);
}

static void tear_down(napi_async_cleanup_hook_handle hook, void *data)
{
    struct addon *addon = data;

    (void)hook;
    (void)end(addon);
    uv_close((uv_handle_t *)&addon->lost, torn_down);
}

NAPI_MODULE_INIT(/* napi_env env, napi_value exports */)
{
    struct addon *addon = must(calloc(1, sizeof *addon));
    napi_value value;
    uv_loop_t *loop;

    addon->lost.data = addon;
    addon->lost_fd = epoll_create1(EPOLL_CLOEXEC);
    if (sem_init(&addon->gone, 0, 0) != 0 || napi_get_uv_event_loop(env, &loop) != napi_ok ||
        uv_poll_init(loop, &addon->lost, addon->lost_fd) != 0) {
        napi_throw_error(env, NULL, "holdfast: no descriptor can be had");
        return NULL;
    }
    uv_poll_start(&addon->lost, UV_READABLE, hear_losses);
    uv_unref((uv_handle_t *)&addon->lost);
    napi_create_string_utf8(env, "holdfast", NAPI_AUTO_LENGTH, &value);
    napi_create_threadsafe_function(env, NULL, NULL, value, 0, 1, NULL, NULL, addon, tell,
                                    &addon->tell);
    napi_unref_threadsafe_function(env, addon->tell);
    napi_add_async_cleanup_hook(env, tear_down, addon, &addon->hook);
    napi_create_string_utf8(env, hf_version(), NAPI_AUTO_LENGTH, &value);
    napi_set_named_property(env, exports, "version", value);
    napi_create_function(env, "call", NAPI_AUTO_LENGTH, start, addon, &value);
    napi_set_named_property(env, exports, "call", value);
    napi_create_reference(env, exports, 1, &addon->exports);
    return exports;
}
