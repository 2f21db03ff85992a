/* addon.c - libholdfast for Node: calls on threads of their own, never on libuv's. index.js gives it
 * words, promises and errors.
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
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOK_US   100  /* how long the event loop stands still for an answer at the most */
#define AREA_SIZE 4096 /* bytes that index.js shares: numbers of a call, and its reply if it fits */

/* What a thread does, and what is done at once. The same numbers stand in index.js. */
enum { OPEN, CLOSE, LOCK, ANY, ALL, LIST, LEADER, BREAK, ONCE, BEGIN, END, RELEASE, RENEW, PUT };
enum { LOOK = PUT + 1, CANCEL, EXIT };

/* A store, or what is done once. index.js has its address; at the end all are closed. */
struct opened {
    struct opened *next;
    struct hf_store *store;
    struct hf_once *once;
    int cancel_fd;
};

struct job {
    struct job *next;
    struct addon *addon;
    int op, cancel_fd;
    bool has_thread, looks; /* looks: for an answer */
    pthread_t thread;
    int64_t id, n[9];
    union { /* what it is about */
        struct opened *in;
        struct hf_lease *lease;
    };
    struct opened *opened; /* new, and not in addon->opened yet */
    struct hf_acquire_options options;
    struct hf_call *call; /* LOCK, RELEASE: it was begun */
    enum hf_loss loss;
    char *reply; /* rows */
    void *data;
    size_t reply_len, data_len, count;
    struct hf_error err;
    const char *words[HF_SEVERAL_MAX + 2]; /* a label, and names: one too many, and it is refused */
    char text[];                           /* they are in here, each with its NUL */
};

/* For the thread of the event loop alone. */
struct addon {
    napi_threadsafe_function tell; /* index.js, of jobs that are done, and leases that are lost */
    napi_ref exports;
    double *area;
    struct job *jobs; /* that it was not told of yet: the process lives while there are any */
    struct opened *opened;
    bool ended;
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

/* By a thread of the library's: index.js looks what it is. */
static void hear_loss(struct hf_lease *lease, enum hf_loss reason, void *addon)
{
    struct job *job = must(calloc(1, sizeof *job));

    (void)reason;
    job->id = -(intptr_t)lease;
    (void)napi_call_threadsafe_function(((struct addon *)addon)->tell, job, napi_tsfn_nonblocking);
}

static enum hf_status shut(struct job *job)
{
    hf_once_close(job->in->once);
    hf_close(job->in->store);
    if (job->in->cancel_fd > 0)
        (void)close(job->in->cancel_fd);
    free(job->in);
    return HF_OK;
}

static enum hf_status open_store(struct job *job)
{
    struct hf_open_options options = {sizeof options, job->n[1], .cancel_fd = job->cancel_fd};
    struct hf_store *store;
    enum hf_status status = hf_open_waiting(job->words[0], &options, &store, &job->err);

    if (status == HF_OK) {
        job->opened = must(calloc(1, sizeof *job->opened));
        job->opened->store = store;
        add(job, (struct row){.n = {(intptr_t)job->opened}}, hf_store_url(store), "");
    }
    return status;
}

static enum hf_status acquire(struct job *job)
{
    struct hf_lease *got[HF_SEVERAL_MAX + 1] = {NULL};
    const char *const *names = job->words + 1;
    size_t count = job->count - 1, which;
    enum hf_status status;

    if (job->op == ALL)
        status = hf_acquire_all(job->in->store, names, count, &job->options, got, &job->err);
    else if (job->op == ANY)
        status =
            hf_acquire_any(job->in->store, names, count, &job->options, got, &which, &job->err);
    else
        status = hf_end_acquire(job->call, got, &job->err);
    for (size_t i = 0; i < count && got[i] != NULL; i++)
        add(job, (struct row){.n = {(intptr_t)got[i], (int64_t)hf_lease_token(got[i])}},
            hf_lease_name(got[i]), "");
    return status;
}

/* Rows of a turn: what it is about, with a sentence, and what is on record if anything is. */
static enum hf_status begin_turn(struct job *job)
{
    struct opened *in = job->in;
    enum hf_status status = hf_once_begin(in->once, &job->err);
    const struct hf_once_record *r = hf_once_on_record(in->once);
    struct hf_lease *lease = hf_once_lease(in->once);
    const char *text = hf_once_text(in->once);
    struct row row = {{(intptr_t)in, hf_once_outcome(in->once), (intptr_t)lease}, 0, strlen(text)};

    if (lease != NULL)
        row.n[3] = (int64_t)hf_lease_token(lease);
    add(job, row, hf_once_slot(in->once), text);
    if (r != NULL)
        add(job, (struct row){{(int64_t)r->token, r->since_ms}, 0, r->output_len}, r->by,
            r->output);
    return status;
}

static enum hf_status open_once(struct job *job)
{
    const char *const *w = job->words;
    const int64_t *n = job->n;
    struct opened *opened = must(calloc(1, sizeof *opened));
    struct addon *addon = job->addon;
    int fd = opened->cancel_fd = dup(job->cancel_fd);
    /* In the order of its fields. */
    struct hf_once_options o = {sizeof o, n[4], w[2],           w[3],      n[2],           n[5],
                                n[6],     n[7], (uint32_t)n[8], n[3] != 0, (uint32_t)n[0], fd,
                                n[1],     w[0], hear_loss,      NULL,      NULL,           addon,
                                0};
    enum hf_status status = hf_once_open(job->in->store, w[1], &o, &opened->once, &job->err);

    job->in = opened;
    if (status == HF_OK)
        status = begin_turn(job);
    if (status == HF_OK)
        job->opened = opened;
    else
        (void)shut(job);
    return status;
}

static enum hf_status end_turn(struct job *job)
{
    enum hf_once_ending ending = (enum hf_once_ending)job->n[0];
    enum hf_status status = hf_once_end(job->in->once, ending, ending != HF_ONCE_END_SUCCESS,
                                        job->data, job->data_len, &job->err);

    add(job, (struct row){.n = {hf_once_outcome(job->in->once)}}, "", "");
    return status;
}

/* The call with that number ends soon, if it has not ended yet. 0: every call. */
static enum hf_status cancel(struct job *job)
{
    for (struct job *each = job->addon->jobs; each != NULL; each = each->next)
        if (each->cancel_fd > 0 && (job->id == 0 || job->id == each->id))
            (void)eventfd_write(each->cancel_fd, 1);
    return HF_OK;
}

/* Its thread is gone, and what it opened is known. */
static void finish(struct addon *addon, struct job *job)
{
    if (job->has_thread)
        (void)pthread_join(job->thread, NULL);
    job->has_thread = false;
    if (job->opened != NULL) {
        job->opened->next = addon->opened;
        addon->opened = job->opened;
    }
    job->opened = NULL;
}

/* Waits are over, threads gone, and what is held is released. Nothing is begun any more. */
static enum hf_status end(struct job *every)
{
    struct addon *addon = every->addon;

    (void)cancel(every);
    addon->ended = true;
    for (struct job *job = addon->jobs; job != NULL; job = job->next)
        finish(addon, job);
    for (struct opened *each = addon->opened; each != NULL; each = each->next) {
        hf_close(each->store);
        each->store = NULL;
    }
    return HF_OK;
}

static enum hf_status list(struct job *job)
{
    const char *const *words = job->words;

    return hf_record_list(job->in->store, words[0], words[1], add_record, job, &job->err);
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

/* The last row of the reply tells how the call ended. */
static void do_job(struct job *job)
{
    static enum hf_status (*const acts[])(struct job *) = {
        open_store, shut,     acquire, acquire, acquire, list, leader, break_hold, open_once,
        begin_turn, end_turn, release, renew,   put,     look, cancel, end};
    enum hf_status status = acts[job->op](job);

    if (status == HF_LOST && job->op >= RENEW) /* about a lease */
        job->loss = hf_lease_loss(job->lease);
    add(job, (struct row){.n = {status, job->loss, job->err.retry_after_ms}}, job->err.text, "");
}

/* A thread. */
static void *run(void *job)
{
    do_job(job);
    (void)napi_call_threadsafe_function(((struct job *)job)->addon->tell, job,
                                        napi_tsfn_nonblocking);
    return NULL;
}

static void discard(struct job *job)
{
    if (job->cancel_fd > 0)
        (void)close(job->cancel_fd);
    free(job->data);
    free(job->reply);
    free(job);
}

/* How long it is, in the area; or all of it, where that is too small. */
static napi_value reply_of(napi_env env, struct addon *addon, const struct job *job)
{
    void *to = addon->area;
    napi_value reply;

    if (job->reply_len > AREA_SIZE)
        napi_create_arraybuffer(env, job->reply_len, &to, &reply);
    else
        napi_create_uint32(env, (uint32_t)job->reply_len, &reply);
    if (job->reply != NULL)
        memcpy(to, job->reply, job->reply_len);
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
        for (at = &addon->jobs; *at != NULL && *at != job;)
            at = &(*at)->next;
        if (*at == job && (*at = job->next) == NULL && addon->jobs == NULL)
            napi_unref_threadsafe_function(env, addon->tell);
        finish(addon, job);
        napi_create_int64(env, job->id, &args[0]);
        args[1] = reply_of(env, addon, job);
        napi_get_reference_value(env, addon->exports, &exports);
        napi_get_named_property(env, exports, "heard", &heard);
        napi_call_function(env, exports, heard, 2, args, NULL);
    }
    discard(job);
}

/* Begins what can be. True: it is done, too. */
static bool begin(struct addon *addon, struct job *job)
{
    if (addon->ended || job->cancel_fd < 0)
        return false;
    if (job->op == LOCK)
        job->call = must(hf_begin_acquire(job->in->store, job->words[1], &job->options));
    if (job->op == RELEASE) {
        job->loss = hf_lease_loss(job->lease);
        job->call = must(hf_begin_release(job->lease));
    }
    if (job->call == NULL || !job->looks || !hf_call_answered(job->call, LOOK_US))
        return false;
    do_job(job);
    return true;
}

/* Leaves the job to a thread, from which the event loop hears of its end. */
static void hand_over(napi_env env, struct addon *addon, struct job *job)
{
    bool open = !addon->ended && job->cancel_fd >= 0;
    struct opened **at = &addon->opened;

    napi_ref_threadsafe_function(env, addon->tell);
    job->next = addon->jobs;
    addon->jobs = job;
    while (open && job->op == CLOSE && *at != job->in)
        at = &(*at)->next;
    if (open && job->op == CLOSE)
        *at = job->in->next;
    job->has_thread = open && pthread_create(&job->thread, NULL, run, job) == 0;
    if (job->has_thread)
        return;
    if (open && (job->call != NULL || job->op == CLOSE || job->op == BEGIN || job->op == END)) {
        (void)cancel(job);
        do_job(job);
    }
    (void)napi_call_threadsafe_function(addon->tell, job, napi_tsfn_nonblocking);
}

static void set_options(struct job *job)
{
    const char *label = job->words[0];
    const int64_t *n = job->n;
    int fd = job->cancel_fd;
    /* In the order of its fields. */
    struct hf_acquire_options o = {sizeof o,  (uint32_t)n[0], n[1],      label, fd,
                                   n[2] != 0, false,          hear_loss, NULL,  job->addon,
                                   NULL,      n[3] != 0,      NULL};

    job->options = o;
}

static struct job *read_job(napi_env env, struct addon *addon, const napi_value args[2])
{
    const double *area = addon->area;
    struct job *job;
    size_t len;
    void *data;

    napi_get_value_string_utf8(env, args[0], NULL, 0, &len);
    job = must(calloc(1, sizeof *job + len + 1));
    job->addon = addon;
    job->op = (int)area[0];
    job->id = (int64_t)area[1];
    job->in = (void *)(intptr_t)area[2];
    job->looks = area[3] != 0;
    for (int i = 0; i < 9; i++)
        job->n[i] = (int64_t)area[4 + i];
    napi_get_value_string_utf8(env, args[0], job->text, len + 1, &len);
    for (char *word = job->text; word <= job->text + len && job->count < HF_SEVERAL_MAX + 2;) {
        job->words[job->count++] = *word != 0 ? word : NULL;
        word += strlen(word) + 1;
    }
    if (napi_get_buffer_info(env, args[1], &data, &job->data_len) == napi_ok)
        job->data = memcpy(must(malloc(job->data_len + 1)), data, job->data_len);
    if (job->op == BEGIN)
        job->cancel_fd = dup(job->in->cancel_fd);
    while (job->cancel_fd == 0 && (job->op == ONCE || job->n[1] != 0))
        job->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); /* 0 would mean none */
    set_options(job);
    return job;
}

/* call(words, data), with op, id, handle and numbers in the area: the reply if it is done at once,
 * else heard() gets it. */
static napi_value start(napi_env env, napi_callback_info info)
{
    napi_value args[2], reply;
    size_t count = 2;
    struct addon *addon;
    struct job *job;

    napi_get_cb_info(env, info, &count, args, NULL, (void **)&addon);
    job = read_job(env, addon, args);
    if (job->op >= LOOK) {
        do_job(job);
    } else if (!begin(addon, job)) {
        hand_over(env, addon, job);
        return NULL;
    }
    reply = reply_of(env, addon, job);
    discard(job);
    return reply;
}

static void tear_down(void *data)
{
    struct addon *addon = data;
    struct job job = {.addon = addon};

    (void)end(&job);
    while ((job.in = addon->opened) != NULL) {
        addon->opened = job.in->next;
        (void)shut(&job);
    }
    free(addon);
}

NAPI_MODULE_INIT(/* napi_env env, napi_value exports */)
{
    struct addon *addon = must(calloc(1, sizeof *addon));
    napi_value value;

    napi_create_string_utf8(env, "holdfast", NAPI_AUTO_LENGTH, &value);
    napi_create_threadsafe_function(env, NULL, NULL, value, 0, 1, NULL, NULL, addon, tell,
                                    &addon->tell);
    napi_unref_threadsafe_function(env, addon->tell);
    napi_add_env_cleanup_hook(env, tear_down, addon);
    napi_create_string_utf8(env, hf_version(), NAPI_AUTO_LENGTH, &value);
    napi_set_named_property(env, exports, "version", value);
    napi_create_arraybuffer(env, AREA_SIZE, (void **)&addon->area, &value);
    napi_set_named_property(env, exports, "area", value);
    napi_create_function(env, "call", NAPI_AUTO_LENGTH, start, addon, &value);
    napi_set_named_property(env, exports, "call", value);
    napi_create_reference(env, exports, 1, &addon->exports);
    return exports;
}
