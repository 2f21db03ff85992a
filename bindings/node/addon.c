/* addon.c - libholdfast for Node: calls on threads of their own, never on libuv's, and one descriptor
 * on libuv's poller that tells of answers and of leases that are lost. index.js gives it words,
 * promises and errors. Each environment (the main thread, each worker) has its own of everything.
 * Where Node itself ends without memory, so does this. */
#define NAPI_VERSION 8
#include <holdfast.h>
#include <holdfast/elect.h>
#include <holdfast/record.h>
#include <holdfast/several.h>
#include <inttypes.h>
#include <node_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#define IDLE_MAX 4 /* threads that stay for the next call */

/* The same numbers stand in index.js. */
enum op { OPEN, CLOSE, LOCK, ANY, ALL, RENEW, RELEASE, PUT, LIST, LEADER, BREAK };

/* Waiting for a thread; having one; to be told. */
enum state { QUEUED, RUNNING, DONE, ANOTHER };

struct job {
    struct job *next;
    struct addon *addon;
    enum state state;
    int64_t id, numbers[3];
    int32_t op;
    int cancel_fd;
    void *handle;
    char *words, *data, *reply; /* words: each with its NUL; reply: rows of text and bytes */
    size_t words_len, data_len, reply_len;
    enum hf_loss loss;
    struct hf_error err;
};

struct addon {
    uv_poll_t poll; /* of ready_fd: an epoll of wake_fd, and of the descriptors of leases */
    int ready_fd, wake_fd;
    napi_env env;
    napi_ref exports;
    napi_async_cleanup_hook_handle hook;
    size_t unanswered; /* the process lives while there are any */
    pthread_mutex_t lock;
    pthread_cond_t work, quiet;
    struct job *jobs; /* that were not told yet, the oldest first */
    unsigned queued, idle, threads;
    bool ending;
    struct hf_store **stores; /* open ones; NULL where one was closed */
    size_t slots;
};

static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

/* One row: five numbers in a line, then the text and the bytes that they measure. */
static bool add_record(const struct hf_record *record, void *stream)
{
    fprintf(stream, "%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %zu %zu\n", record->token,
            record->number, record->written_ms, record->until_ms, strlen(record->key),
            record->value_len);
    fputs(record->key, stream);
    return fwrite(record->value, 1, record->value_len, stream) == record->value_len;
}

static void add_leader(const struct hf_leader *leader, void *stream)
{
    fprintf(stream, "%" PRIu64 " 0 %" PRId64 " %" PRId64 " %zu %zu\n%s%s", leader->term,
            leader->age_ms, leader->remaining_ms, strlen(leader->label), strlen(leader->address),
            leader->label, leader->address);
}

/* What was open as from is now to: NULL means a place that is free. */
static void replace_store(struct addon *addon, struct hf_store *from, struct hf_store *to)
{
    size_t at = 0;

    pthread_mutex_lock(&addon->lock);
    while (at < addon->slots && addon->stores[at] != from)
        at++;
    if (at == addon->slots)
        addon->stores = must(realloc(addon->stores, ++addon->slots * sizeof *addon->stores));
    addon->stores[at] = to;
    pthread_mutex_unlock(&addon->lock);
}

static enum hf_status open_store(struct job *job, FILE *stream)
{
    struct hf_open_options options = {
        .size = sizeof options, .wait_ms = job->numbers[0], .cancel_fd = job->cancel_fd};
    struct hf_store *store = NULL;
    enum hf_status status = hf_open_waiting(job->words, &options, &store, &job->err);

    if (store != NULL) {
        replace_store(job->addon, NULL, store);
        fprintf(stream, "%" PRIuPTR " %s", (uintptr_t)store, hf_store_url(store));
    }
    return status;
}

/* One row for each lease: which name, the handle, the token. The words are a label, and names. */
static enum hf_status acquire(struct job *job, FILE *stream)
{
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = (uint32_t)job->numbers[0],
                                         .wait_ms = job->numbers[1],
                                         .label = job->words[0] != '\0' ? job->words : NULL,
                                         .cancel_fd = job->cancel_fd,
                                         .no_keeper = (job->numbers[2] & 1) != 0,
                                         .spread = (job->numbers[2] & 2) != 0};
    const char *names[HF_SEVERAL_MAX + 1],
        *name = job->words; /* with one too many, the library says so */
    struct hf_lease *leases[HF_SEVERAL_MAX + 1] = {NULL};
    size_t count = 0, which = 0;
    enum hf_status status;

    while ((name += strlen(name) + 1) <= job->words + job->words_len && count <= HF_SEVERAL_MAX)
        names[count++] = name;
    if (job->op == ALL)
        status = hf_acquire_all(job->handle, names, count, &options, leases, &job->err);
    else if (job->op == ANY)
        status = hf_acquire_any(job->handle, names, count, &options, leases, &which, &job->err);
    else
        status = hf_acquire(job->handle, names[0], &options, leases, &job->err);
    for (size_t i = 0; i < count && leases[i] != NULL; i++)
        fprintf(stream, "%zu %" PRIuPTR " %" PRIu64 "\n", which + i, (uintptr_t)leases[i],
                hf_lease_token(leases[i]));
    return status;
}

static enum hf_status call(struct job *job, FILE *stream)
{
    const char *name = job->words, *second = name + strlen(name) + 1;
    struct hf_break_options how = {sizeof how, NULL, second, job->numbers[0] != 0};
    struct hf_error *err = &job->err;
    enum hf_status status;

    switch (job->op) {
    case OPEN:
        return open_store(job, stream);
    case CLOSE:
        hf_close(job->handle);
        return HF_OK;
    case RELEASE:
        job->loss = hf_lease_loss(job->handle);
        return hf_release(job->handle, err);
    case LIST:
        return hf_record_list(job->handle, name, second, add_record, stream, err);
    case LEADER:
        return hf_leader(job->handle, name, add_leader, stream, err);
    case BREAK:
        return hf_break(job->handle, name, strtoull(job->data, NULL, 10), &how, NULL, err);
    case RENEW:
    case PUT:
        status = job->op == RENEW ? hf_renew(job->handle, (uint32_t)job->numbers[0], err)
                                  : hf_record_put(job->handle, name, job->data, job->data_len,
                                                  job->numbers[0], err);
        job->loss = status == HF_LOST ? hf_lease_loss(job->handle) : HF_LOSS_NONE;
        return status;
    default:
        return acquire(job, stream);
    }
}

/* The first in that state, or the end of the list. With the lock held, as what follows. */
static struct job **find(struct addon *addon, enum state state)
{
    struct job **at = &addon->jobs;

    while (*at != NULL && (*at)->state != state)
        at = &(*at)->next;
    return at;
}

static void is_done(struct job *job)
{
    job->state = DONE;
    (void)eventfd_write(job->addon->wake_fd, 1);
}

/* A thread: it stays for the next call unless there are enough of its kind. */
static void *run(void *data)
{
    struct addon *addon = data;
    struct job *job;
    FILE *stream;

    pthread_mutex_lock(&addon->lock);
    do {
        addon->idle++;
        while ((job = *find(addon, QUEUED)) == NULL && !addon->ending)
            pthread_cond_wait(&addon->work, &addon->lock);
        addon->idle--;
        if (job == NULL)
            break;
        addon->queued--;
        job->state = RUNNING;
        pthread_mutex_unlock(&addon->lock);
        stream = must(open_memstream(&job->reply, &job->reply_len));
        job->err.code = call(job, stream);
        if (fclose(stream) != 0)
            abort();
        pthread_mutex_lock(&addon->lock);
        is_done(job);
    } while (addon->idle < IDLE_MAX);
    addon->threads--;
    pthread_cond_signal(&addon->quiet);
    pthread_mutex_unlock(&addon->lock);
    return NULL;
}

static void discard(struct job *job)
{
    if (job->cancel_fd > 0)
        (void)close(job->cancel_fd);
    free(job->words);
    free(job->data);
    free(job->reply);
    free(job);
}

static napi_value text(napi_env env, const char *string)
{
    napi_value value;

    napi_create_string_utf8(env, string, NAPI_AUTO_LENGTH, &value);
    return value;
}

static napi_value number(napi_env env, int64_t n)
{
    napi_value value;

    napi_create_int64(env, n, &value);
    return value;
}

/* Calls exports.heard(id), of a lease that is lost, or heard(id, status, ...), of a call that ended. */
static void tell(struct addon *addon, int64_t id, struct job *job)
{
    napi_env env = addon->env;
    napi_handle_scope scope;
    napi_value exports, heard, args[6];

    napi_open_handle_scope(env, &scope);
    napi_get_reference_value(env, addon->exports, &exports);
    napi_get_named_property(env, exports, "heard", &heard);
    args[0] = number(env, id);
    if (job != NULL) {
        args[1] = number(env, job->err.code);
        args[2] = text(env, job->err.text);
        args[3] = number(env, job->err.retry_after_ms);
        args[4] = number(env, job->loss);
        napi_create_buffer_copy(env, job->reply_len, job->reply, NULL, &args[5]);
        discard(job);
        if (--addon->unanswered == 0)
            uv_unref((uv_handle_t *)&addon->poll);
    }
    napi_make_callback(env, NULL, exports, heard, job != NULL ? 6 : 1, args, NULL);
    napi_close_handle_scope(env, scope);
}

static void ready(uv_poll_t *poll, int status, int events)
{
    struct addon *addon = poll->data;
    struct epoll_event found[16];
    int count = epoll_wait(addon->ready_fd, found, 16, 0);
    struct job **at, *job;
    eventfd_t woken;

    (void)status;
    (void)events;
    (void)eventfd_read(addon->wake_fd, &woken);
    for (int i = 0; i < count; i++)
        if (found[i].data.u64 != 0)
            tell(addon, (int64_t)found[i].data.u64, NULL);
    pthread_mutex_lock(&addon->lock);
    while ((job = *(at = find(addon, DONE))) != NULL) {
        *at = job->next;
        pthread_mutex_unlock(&addon->lock);
        tell(addon, job->id, job);
        pthread_mutex_lock(&addon->lock);
    }
    pthread_mutex_unlock(&addon->lock);
}

/* Of a BigInt. */
static void *pointer_of(napi_env env, napi_value value)
{
    uint64_t number = 0;
    bool whole;

    napi_get_value_bigint_uint64(env, value, &number, &whole);
    return (void *)(uintptr_t)number;
}

/* Of a Buffer; the copy is followed by two NULs. */
static char *bytes_of(napi_env env, napi_value value, size_t *len)
{
    void *data = NULL;
    char *copy;

    napi_get_buffer_info(env, value, &data, len);
    copy = must(calloc(1, *len + 2));
    if (*len > 0)
        memcpy(copy, data, *len);
    return copy;
}

/* Hands it to a thread that is idle, or a new one. */
static void begin(struct addon *addon, struct job *job)
{
    pthread_t thread;

    pthread_mutex_lock(&addon->lock);
    *find(addon, ANOTHER) = job;
    if (addon->queued++ < addon->idle) {
        pthread_cond_signal(&addon->work);
    } else if (pthread_create(&thread, NULL, run, addon) == 0) {
        pthread_detach(thread);
        addon->threads++;
    } else {
        addon->queued--;
        job->err.code = HF_NOMEM;
        (void)snprintf(job->err.text, sizeof job->err.text, "no thread can be had for this call");
        is_done(job);
    }
    pthread_mutex_unlock(&addon->lock);
}

/* start(id, op, handle, words, data, number, number, number) */
static napi_value start(napi_env env, napi_callback_info info)
{
    napi_value args[8];
    size_t count = 8;
    struct job *job = must(calloc(1, sizeof *job));

    napi_get_cb_info(env, info, &count, args, NULL, (void **)&job->addon);
    napi_get_value_int64(env, args[0], &job->id);
    napi_get_value_int32(env, args[1], &job->op);
    job->handle = pointer_of(env, args[2]);
    job->words = bytes_of(env, args[3], &job->words_len);
    job->data = bytes_of(env, args[4], &job->data_len);
    for (int i = 0; i < 3; i++)
        napi_get_value_int64(env, args[5 + i], &job->numbers[i]);
    while (job->cancel_fd == 0 && (job->op == OPEN || job->numbers[1] != 0)) /* 0 would mean none */
        job->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (job->op == CLOSE)
        replace_store(job->addon, job->handle, NULL);
    if (job->addon->unanswered++ == 0)
        uv_ref((uv_handle_t *)&job->addon->poll);
    begin(job->addon, job);
    return NULL;
}

static void cancel_jobs(struct addon *addon, int64_t id)
{
    for (struct job *job = addon->jobs; job != NULL; job = job->next)
        if (job->cancel_fd > 0 && (id == 0 || job->id == id))
            (void)eventfd_write(job->cancel_fd, 1);
}

/* look(lease): [ms that remain, loss, the library's words once it is lost]. Never blocks.
 * look(lease, id): heard(id) is called when it is lost; that ends with the lease. */
static napi_value look(napi_env env, napi_callback_info info)
{
    napi_value args[2], array;
    size_t count = 2;
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    struct hf_error err = {0};
    struct hf_lease *lease;
    struct addon *addon;
    int64_t id = 0;

    napi_get_cb_info(env, info, &count, args, NULL, (void **)&addon);
    lease = pointer_of(env, args[0]);
    if (napi_get_value_int64(env, args[1], &id) == napi_ok) {
        event.data.u64 = (uint64_t)id;
        (void)epoll_ctl(addon->ready_fd, EPOLL_CTL_ADD, hf_lease_fd(lease), &event);
    }
    napi_create_array(env, &array);
    napi_set_element(env, array, 0, number(env, hf_lease_remaining_ms(lease)));
    napi_set_element(env, array, 1, number(env, hf_lease_loss(lease)));
    if (hf_lease_loss(lease) != HF_LOSS_NONE && hf_renew(lease, 0, &err) != HF_OK) /* says why */
        napi_set_element(env, array, 2, text(env, err.text));
    return array;
}

static void torn_down(uv_handle_t *handle)
{
    struct addon *addon = handle->data;

    (void)close(addon->ready_fd);
    (void)close(addon->wake_fd);
    napi_remove_async_cleanup_hook(addon->hook);
    free(addon);
}

/* Waits are over, threads gone, and what is held is released. */
static void end(struct addon *addon)
{
    struct job *job;

    pthread_mutex_lock(&addon->lock);
    addon->ending = true;
    cancel_jobs(addon, 0);
    pthread_cond_broadcast(&addon->work);
    while (addon->threads > 0)
        pthread_cond_wait(&addon->quiet, &addon->lock);
    pthread_mutex_unlock(&addon->lock);
    while ((job = addon->jobs) != NULL) {
        addon->jobs = job->next;
        discard(job);
    }
    while (addon->slots > 0)
        hf_close(addon->stores[--addon->slots]);
}

/* cancel(id): that call ends soon, if it has not ended yet. cancel(0): the process exits. */
static napi_value cancel(napi_env env, napi_callback_info info)
{
    napi_value value;
    size_t count = 1;
    struct addon *addon;
    int64_t id = 0;

    napi_get_cb_info(env, info, &count, &value, NULL, (void **)&addon);
    napi_get_value_int64(env, value, &id);
    pthread_mutex_lock(&addon->lock);
    cancel_jobs(addon, id);
    pthread_mutex_unlock(&addon->lock);
    if (id == 0)
        end(addon);
    return NULL;
}

static void tear_down(napi_async_cleanup_hook_handle hook, void *data)
{
    struct addon *addon = data;

    (void)hook;
    end(addon);
    free(addon->stores);
    uv_close((uv_handle_t *)&addon->poll, torn_down);
}

NAPI_MODULE_INIT(/* napi_env env, napi_value exports */)
{
    struct addon *addon = must(calloc(1, sizeof *addon));
    struct epoll_event event = {.events = EPOLLIN};
    const napi_property_descriptor all[] = {
        {"start", NULL, start, NULL, NULL, NULL, napi_default, addon},
        {"cancel", NULL, cancel, NULL, NULL, NULL, napi_default, addon},
        {"look", NULL, look, NULL, NULL, NULL, napi_default, addon},
        {"version", NULL, NULL, NULL, NULL, text(env, hf_version()), napi_default, NULL},
        {"needs", NULL, NULL, NULL, NULL, text(env, HF_VERSION_STRING), napi_default, NULL}};
    uv_loop_t *loop;

    addon->env = env;
    addon->poll.data = addon;
    addon->ready_fd = epoll_create1(EPOLL_CLOEXEC);
    addon->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&addon->lock, NULL);
    pthread_cond_init(&addon->work, NULL);
    pthread_cond_init(&addon->quiet, NULL);
    if (napi_get_uv_event_loop(env, &loop) != napi_ok ||
        epoll_ctl(addon->ready_fd, EPOLL_CTL_ADD, addon->wake_fd, &event) != 0 ||
        uv_poll_init(loop, &addon->poll, addon->ready_fd) != 0) {
        napi_throw_error(env, NULL, "holdfast: no descriptor can be had");
        return NULL;
    }
    (void)uv_poll_start(&addon->poll, UV_READABLE, ready);
    uv_unref((uv_handle_t *)&addon->poll);
    napi_add_async_cleanup_hook(env, tear_down, addon, &addon->hook);
    napi_create_reference(env, exports, 1, &addon->exports);
    napi_define_properties(env, exports, sizeof all / sizeof *all, all);
    return exports;
}
