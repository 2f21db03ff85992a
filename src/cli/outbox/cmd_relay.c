/* cmd_relay.c - holdfast outbox relay: sends what is in an outbox, under a lock.
 *
 * The story: look whether there is an outbox, take the lock, raise the fence, start whoever
 * delivers, relay until we are told to stop or the lock is lost, give everything back. */
#include "cli/outbox/relay.h"

#include "base/base.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SIGNAL_EXIT_BASE = 128,
    PAUSE_MS = 100, /* before the database is asked again, at first */
    PAUSE_MOST_MS = 2000,
    POLL_MAX_MS = 60 * 60 * 1000,
    ENVIRONMENT_OWN = 3
};

/* One relay, from the command line to its end. */
struct job {
    const struct cli_context *context;
    struct outbox_relay_options options;
    struct outbox_relay relay;
    struct take take;
    char lock[HF_NAME_MAX + 1];
    char issuer[HF_IDENTITY_SIZE];
    char own[ENVIRONMENT_OWN][CLI_URL_SIZE + 32]; /* variables of the command */
    char **environment;
    int exec_errno;
};

static int read_request(struct job *job, int argc, char **argv, bool *go_on);
static int check_request(struct job *job);
static int relay_in_job(struct job *job, int *die_of);

static int relay_main(const struct cli_context *context, int argc, char **argv)
{
    struct job *job = calloc(1, sizeof *job);
    bool go_on = false;
    int die_of = 0;
    int exit_code;

    if (job == NULL) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    job->context = context;
    exit_code = read_request(job, argc, argv, &go_on);
    if (go_on) {
        job->relay.signal_fd = cli_catch_signals();
        job->relay.writer = job->relay.signal_fd >= 0 ? cli_stderr_open() : NULL;
        exit_code = EXIT_HF_INTERNAL;
        if (job->relay.writer != NULL)
            exit_code = relay_in_job(job, &die_of);
        outbox_db_release(&job->relay.db);
        cli_stderr_close(job->relay.writer);
    }
    free(job);
    return die_of != 0 ? cli_die_of(die_of) : exit_code;
}

const struct cli_command command_outbox_relay = {
    "outbox relay", "--db URL [options] (-- CMD [ARG...] | --http URL)", "send what is in it",
    relay_main};

static int read_request(struct job *job, int argc, char **argv, bool *go_on)
{
    const struct cli_command *command = &command_outbox_relay;
    struct outbox_relay_options *options = &job->options;
    const struct cli_option table[] = {
        OUTBOX_DB_OPTIONS(&job->relay.db, &options->schema),
        {0, "name", CLI_TEXT, "NAME", "its lock is outbox/NAME; default: main", NULL,
         &options->name, NULL},
        {0, "http", CLI_URL, "URL", "POST messages there, instead of CMD", NULL, options->http,
         NULL},
        {0, "parallel", CLI_NUMBER, "N", "keys at once; default: 8", NULL, &options->parallel,
         NULL},
        {0, "batch", CLI_NUMBER, "N", "messages per fetch; default: 500", NULL, &options->batch,
         NULL},
        {0, "poll", CLI_DURATION, "DURATION", "how often to look for new messages; default: 200ms",
         NULL, &options->poll_ms, NULL},
        {0, "timeout", CLI_DURATION, "DURATION", "how long to wait for an answer; default: 30s",
         NULL, &options->timeout_ms, NULL},
        {0, "attempts", CLI_NUMBER, "N", "after this many a message is dead; default: 20", NULL,
         &options->attempts, NULL},
        TAKE_OPTIONS(&options->take),
        EVENTS_OPTIONS(&options->events),
        {.name = NULL}};
    bool dashes = false;
    int first, bad;

    *options = (struct outbox_relay_options){.take = TAKE_DEFAULTS,
                                             .name = "main",
                                             .parallel = 8,
                                             .batch = 500,
                                             .attempts = 20,
                                             .poll_ms = 200,
                                             .timeout_ms = 30000};
    first = cli_parse(command, table, argc, argv, &dashes);
    if (first < 0)
        return cli_parse_exit(first);
    if (first < argc && !dashes)
        return cli_one_too_many(command, argv[first]);
    options->command = first < argc ? argv + first : NULL;
    bad = check_request(job);
    *go_on = bad == 0;
    return bad;
}

static int check_numbers(const struct outbox_relay_options *options)
{
    const struct cli_command *command = &command_outbox_relay;

    if (options->parallel < 1 || options->parallel > OUTBOX_PARALLEL_MAX)
        return cli_usage_error(command, "--parallel: 1 to %d", OUTBOX_PARALLEL_MAX);
    if (options->batch < 1 || options->batch > OUTBOX_BATCH_MAX)
        return cli_usage_error(command, "--batch: 1 to %d", OUTBOX_BATCH_MAX);
    if (options->attempts < 1 || options->attempts > INT32_MAX)
        return cli_usage_error(command, "--attempts: at least 1");
    if (options->poll_ms < 1 || options->poll_ms > POLL_MAX_MS)
        return cli_usage_error(command, "--poll: 1ms to 1h");
    if (options->timeout_ms < 1 || options->timeout_ms > POLL_MAX_MS)
        return cli_usage_error(command, "--timeout: 1ms to 1h");
    return 0;
}

static int check_request(struct job *job)
{
    const struct cli_command *command = &command_outbox_relay;
    struct outbox_relay_options *options = &job->options;
    char lock[sizeof job->lock + 8];
    int bad = check_numbers(options);

    if (bad != 0)
        return bad;
    if (job->relay.db.url[0] == '\0')
        return cli_usage_error(command, "--db is required: the database with the outbox");
    if ((options->command != NULL) == (options->http[0] != '\0'))
        return cli_usage_error(command, "say where messages go: \"-- CMD\", or --http URL");
    if (options->name[0] == '\0' ||
        snprintf(lock, sizeof lock, "outbox/%s", options->name) >= (int)sizeof job->lock)
        return cli_usage_error(command, "--name: 1 to %d bytes", HF_NAME_MAX - 7);
    memcpy(job->lock, lock, sizeof job->lock);
    bad = events_check(command, &options->events);
    return bad != 0 ? bad : take_check(command, job->lock, &options->take);
}

/* Whether there is an outbox at all. One whose database is down may come up while we wait. */
static enum hf_status check_outbox(struct job *job, struct hf_error *err)
{
    struct outbox_db *db = &job->relay.db;
    enum hf_status status = outbox_db_init(db, job->options.schema, err);

    if (status != HF_OK)
        return status;
    db->cancel_fd = job->relay.signal_fd;
    status = outbox_db_open(db, err);
    if (status == HF_OK) {
        hf__outbox_put_mark(outbox_db_say(db), &db->names);
        status = outbox_db_do(db, NULL, err);
    }
    outbox_db_close(db);
    if ((status == HF_UNREACHABLE || status == HF_BUSY) && job->options.take.wait_ms != 0) {
        cli_stderr_say(job->relay.writer, "%s; trying again", err->text);
        return HF_OK;
    }
    return status;
}

static void tell_waiting(struct take *take, const struct hf_error *why)
{
    struct job *job = take->data;

    events_set_label(job->relay.events, take->shown_label);
    EVENTS_SAY(job->relay.events, EVENT_WAITING, EVENT_TEXT("status", hf_status_name(why->code)),
               EVENT_TEXT("reason", cli_text_of(why)));
}

static void tell_acquired(struct job *job, int64_t since_ns)
{
    events_set_label(job->relay.events, job->take.shown_label);
    events_set_token(job->relay.events, hf_lease_token(job->relay.lease));
    EVENTS_SAY(job->relay.events, EVENT_ACQUIRED,
               EVENT_NUMBER("waited_ms", (hf__now_ns() - since_ns) / HF__NS_PER_MS));
}

static enum hf_status take_the_lock(struct job *job, struct hf_error *err)
{
    struct hf_acquire_options acquire = {.size = sizeof acquire};
    const struct take_options *given = &job->options.take;
    int64_t since_ns = hf__now_ns();
    enum hf_status status;

    if (given->ttl_given)
        acquire.ttl_ms = (uint32_t)given->ttl_ms;
    job->take = (struct take){.writer = job->relay.writer,
                              .name = job->lock,
                              .label = given->label,
                              .label_pid = getpid(),
                              .signal_fd = job->relay.signal_fd,
                              .on_wait = tell_waiting,
                              .data = job};
    status = take_open(&job->take, job->context->store_url, given->wait_ms, err);
    if (status != HF_OK)
        return status;
    events_set_store(job->relay.events, hf_store_url(job->take.store));
    status = take_lock(&job->take, &acquire, &job->relay.lease, err);
    take_end(&job->take);
    if (status == HF_OK)
        tell_acquired(job, since_ns);
    return status;
}

/* The variables of the command: ours, and no password of a store. */
static bool make_environment(struct job *job)
{
    static const char *const left_out[] = {
        "HOLDFAST_NAME=",  "HOLDFAST_TOKEN=",  "HOLDFAST_STORE=",  "HOLDFAST_STORE_FD=",
        "HOLDFAST_OWNER=", "HOLDFAST_TOKENS=", "HOLDFAST_OWNERS=", "HOLDFAST_SLOT="};
    size_t count = 0;
    size_t used = 0;

    while (environ[count] != NULL)
        count++;
    job->environment = calloc(count + ENVIRONMENT_OWN + 1, sizeof *job->environment);
    if (job->environment == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        bool left = false;

        for (size_t j = 0; j < sizeof left_out / sizeof left_out[0]; j++)
            left |= strncmp(environ[i], left_out[j], strlen(left_out[j])) == 0;
        if (!left)
            job->environment[used++] = environ[i];
    }
    (void)snprintf(job->own[0], sizeof job->own[0], "HOLDFAST_NAME=%s", job->lock);
    (void)snprintf(job->own[1], sizeof job->own[1], "HOLDFAST_TOKEN=%" PRIu64,
                   job->relay.pass.token);
    (void)snprintf(job->own[2], sizeof job->own[2], "HOLDFAST_STORE=%s",
                   hf_store_url(job->take.store));
    for (size_t i = 0; i < ENVIRONMENT_OWN; i++)
        job->environment[used++] = job->own[i];
    return true;
}

static void say(void *data, const char *text)
{
    cli_stderr_say(data, "%s", text);
}

static enum hf_status open_sender(struct job *job, struct hf_error *err)
{
    struct outbox_relay *relay = &job->relay;
    struct hf__sender_options options = {.url = job->options.http,
                                         .command = job->options.command,
                                         .environment = job->environment,
                                         .exec_errno = &job->exec_errno,
                                         .deliveries = (unsigned)job->options.parallel,
                                         .limit_ms = job->options.timeout_ms,
                                         .say = say,
                                         .data = relay->writer};

    return relay->sender_ops->open(&options, &relay->sender, err);
}

/* Raises the fence; a database that is down is waited for while the lock is ours. */
static enum hf_status raise_fence(struct outbox_relay *relay, struct hf_error *err)
{
    struct pollfd fds[] = {{.fd = relay->signal_fd, .events = POLLIN},
                           {.fd = relay->lost_fd, .events = POLLIN}};
    enum hf_status status;
    uint32_t dice;

    for (;;) {
        status = outbox_settle_begin(relay, err);
        if (status != HF_BUSY && status != HF_UNREACHABLE)
            break;
        if (!relay->told)
            cli_stderr_say(relay->writer, "%s; trying again", err->text);
        relay->told = true;
        hf__random(&dice, sizeof dice);
        if (hf__poll_until(fds, 2, hf__backoff_failed(&relay->backoff, hf__now_ns(), dice)) == 0)
            continue;
        return fds[0].revents != 0
                   ? hf__fail(err, HF_CANCELLED, "told to stop")
                   : hf__fail(err, HF_LOST, "lock \"%s\" is lost", hf_lease_name(relay->lease));
    }
    hf__backoff_worked(&relay->backoff);
    return status;
}

static enum hf_status relay_under_lock(struct job *job, struct hf_error *err)
{
    struct outbox_relay *relay = &job->relay;
    size_t places = (size_t)(2 * job->options.batch + job->options.parallel);
    enum hf_status status;

    relay->options = &job->options;
    relay->lost_fd = hf_lease_fd(relay->lease);
    relay->backoff = (struct hf__backoff){.first_ns = PAUSE_MS * HF__NS_PER_MS,
                                          .most_ns = PAUSE_MOST_MS * HF__NS_PER_MS};
    if (hf_store_identity(job->take.store, job->issuer, err) != HF_OK)
        job->issuer[0] = '\0';
    relay->pass = (struct hf__outbox_pass){
        .name = job->options.name, .token = hf_lease_token(relay->lease), .issuer = job->issuer};
    relay->deliveries = calloc(job->options.parallel, sizeof *relay->deliveries);
    if (!outbox_batch_init(&relay->batch, places) || relay->deliveries == NULL ||
        !make_environment(job))
        return hf__nomem(err);
    status = raise_fence(relay, err);
    if (status == HF_OK)
        status = open_sender(job, err);
    if (status == HF_OK)
        status = outbox_relay_loop(relay, err);
    if (relay->sender != NULL)
        relay->sender_ops->close(relay->sender);
    outbox_tell_figures(relay, true);
    return status;
}

static void give_back(struct job *job)
{
    struct hf_error err;
    enum hf_status status = hf_release(job->relay.lease, &err);

    if (status == HF_OK)
        events_say(job->relay.events, EVENT_RELEASED, NULL);
    if (status != HF_OK && status != HF_LOST)
        take_say_not_released(job->relay.writer, job->lock, &err);
}

/* As for run. */
static int exit_code_of(struct job *job, enum hf_status status, const struct hf_error *err,
                        int *die_of)
{
    *die_of = cli_pending_signal(job->relay.signal_fd);
    if (status == HF_LOST || status == HF_STALE)
        EVENTS_SAY(job->relay.events, EVENT_LOST, EVENT_TEXT("reason", err->text));
    else if (status != HF_CANCELLED)
        EVENTS_SAY(job->relay.events, EVENT_FAILED, EVENT_TEXT("reason", cli_text_of(err)));
    if (*die_of != 0 && (status == HF_CANCELLED || status == HF_BUSY)) {
        if (status == HF_CANCELLED && strchr(err->text, ';') != NULL)
            cli_stderr_say(job->relay.writer, "%s", err->text);
        return SIGNAL_EXIT_BASE + *die_of;
    }
    *die_of = 0;
    cli_stderr_say(job->relay.writer, "%s", cli_text_of(err));
    if (job->exec_errno != 0)
        return job->exec_errno == ENOENT || job->exec_errno == ENOTDIR ? EXIT_HF_NOT_FOUND
                                                                       : EXIT_HF_CANNOT_EXEC;
    if (status == HF_BUSY && job->relay.lease == NULL)
        return (int)job->options.take.busy_exit;
    return status == HF_STALE || status == HF_LOST ? EXIT_HF_LOST : cli_exit_code(status);
}

static int relay_in_job(struct job *job, int *die_of)
{
    struct outbox_relay *relay = &job->relay;
    struct hf_error err;
    enum hf_status status = HF_OK;
    int exit_code;

    relay->sender_ops = &outbox_command_ops;
    relay->events = events_open(&job->options.events, job->lock, relay->writer);
    if (job->options.http[0] != '\0')
        status = hf__sender_find(&relay->sender_ops, &err);
    if (status == HF_OK)
        status = check_outbox(job, &err);
    if (status == HF_OK)
        status = take_the_lock(job, &err);
    if (status == HF_OK)
        status = relay_under_lock(job, &err);
    outbox_db_close(&relay->db);
    if (relay->lease != NULL)
        give_back(job);
    hf_close(job->take.store);
    outbox_batch_release(&relay->batch);
    free(relay->deliveries);
    free(job->environment);
    exit_code = exit_code_of(job, status, &err, die_of);
    EVENTS_SAY(relay->events, EVENT_ENDED, EVENT_NUMBER("exit_code", exit_code));
    events_close(relay->events);
    return exit_code;
}
