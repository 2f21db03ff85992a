/* cmd_acquire.c - holdfast acquire: take a detached lease and hand it to the shell. */
#include "cli/say/eval.h"

#include "base/base.h"
#include "cli/audit/audit.h"
#include "cli/take/take.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request {
    const char *name;
    struct take_options given;
    struct audit_require require;
    bool json;
};

/* The request under way. */
struct errand {
    const struct cli_context *context;
    struct request *request;
    struct take take;
};

static int read_request(struct request *request, int argc, char **argv, bool *answered);
static int acquire(const struct cli_context *context, struct request *request, int signal_fd);
static int acquire_in_store(struct errand *errand);
static int hand_over(struct errand *errand, struct hf_lease *lease);
static bool print_lease(const struct cli_context *context, const struct hf_store *store,
                        struct hf_lease *lease, bool json);

static int acquire_main(const struct cli_context *context, int argc, char **argv)
{
    struct request request = {.given = TAKE_DEFAULTS};
    bool answered = false;
    int number = 0;
    int exit_code = read_request(&request, argc, argv, &answered);

    if (answered)
        return exit_code;
    if (exit_code == 0) {
        int signal_fd = cli_catch_signals();

        exit_code = signal_fd < 0 ? EXIT_HF_INTERNAL : acquire(context, &request, signal_fd);
        if (exit_code != 0 && signal_fd >= 0)
            number = cli_pending_signal(signal_fd);
    }
    if (number)
        exit_code = 128 + number;
    if (exit_code != 0 && !request.json) {
        printf("(exit %d)\n", exit_code);
        (void)fflush(stdout);
    }
    return number ? cli_die_of(number) : exit_code;
}

const struct cli_command command_acquire = {
    "acquire", "[options] NAME", "take a lock and print what renews and releases it", acquire_main};

static int read_request(struct request *request, int argc, char **argv, bool *answered)
{
    const struct cli_option options[] = {TAKE_OPTIONS(&request->given),
                                         AUDIT_REQUIRE_OPTIONS(&request->require),
                                         {0, "json", CLI_FLAG, NULL,
                                          "print one JSON object instead of lines for eval", NULL,
                                          &request->json, NULL},
                                         {.name = NULL}};
    int parsed = cli_parse_operand(&command_acquire, options, argc, argv, &request->name);

    *answered = parsed == CLI_HELP_SHOWN;
    if (parsed < 0)
        return cli_parse_exit(parsed);
    parsed = take_check(&command_acquire, request->name, &request->given);
    return parsed ? parsed : audit_require_check(&command_acquire, &request->require);
}

/* The label is that of the script that asks: we are gone when somebody reads it. */
static int acquire(const struct cli_context *context, struct request *request, int signal_fd)
{
    struct errand errand = {.context = context,
                            .request = request,
                            .take = {.writer = cli_stderr_open(),
                                     .name = request->name,
                                     .label = request->given.label,
                                     .label_pid = getppid(),
                                     .signal_fd = signal_fd,
                                     .last_words = request->json ? NULL : cli_eval_fails}};
    struct take *take = &errand.take;
    struct hf_error err;
    enum hf_status status;
    int exit_code;

    if (take->writer == NULL) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    status = take_open(take, context->store_url, request->given.wait_ms, &err);
    exit_code = status == HF_OK ? acquire_in_store(&errand) : cli_fail(&err);
    take_end(take);
    cli_stderr_close(take->writer);
    hf_close(take->store);
    return exit_code;
}

/* 0, or the exit code after a message. */
static int carries_what_is_required(struct errand *errand, int64_t limit_ms)
{
    char why[AUDIT_WHY_SIZE];
    int bad =
        audit_require_met(&errand->request->require, errand->context->store_url, limit_ms, why);

    if (bad)
        cli_error("lock \"%s\": %s", errand->request->name, why);
    return bad;
}

static int acquire_in_store(struct errand *errand)
{
    const struct take_options *given = &errand->request->given;
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = given->ttl_given ? (uint32_t)given->ttl_ms : 0,
                                         .detached = true};
    struct hf_lease *lease;
    struct hf_error err;
    enum hf_status status;
    int exit_code = carries_what_is_required(errand, 0);

    if (exit_code)
        return exit_code;
    status = take_lock(&errand->take, &options, &lease, &err);
    if (status == HF_OK)
        return hand_over(errand, lease);
    exit_code = cli_fail(&err);
    return status == HF_BUSY ? (int)given->busy_exit : exit_code;
}

/* A lease that nobody could renew or release is given back. */
static int hand_over(struct errand *errand, struct hf_lease *lease)
{
    int exit_code = EXIT_HF_BUSY;
    int bad = carries_what_is_required(errand, hf_lease_ttl_ms(lease) / 3);
    struct hf_error err;

    if (bad) {
        exit_code = bad; /* the server is another than before the wait */
    } else if (poll(&(struct pollfd){.fd = errand->take.signal_fd, .events = POLLIN}, 1, 0) > 0) {
        /* The signal came too late to end the wait; whoever sent it does not want the lock. */
    } else if (print_lease(errand->context, errand->take.store, lease, errand->request->json)) {
        hf_leave(lease);
        return 0;
    } else {
        cli_error("the lease could not be written to stdout (%s); lock \"%s\" is released again",
                  strerror(errno), errand->request->name);
        exit_code = EXIT_HF_INTERNAL;
    }
    if (hf_release(lease, &err) != HF_OK)
        (void)cli_fail(&err);
    return exit_code;
}

static bool print_lease(const struct cli_context *context, const struct hf_store *store,
                        struct hf_lease *lease, bool json)
{
    char token[24];

    (void)snprintf(token, sizeof token, "%" PRIu64, hf_lease_token(lease));
    if (json) {
        fputs("{\"name\": ", stdout);
        cli_json_string(stdout, hf_lease_name(lease));
        printf(", \"token\": %s, \"owner\": \"%s\", \"store\": ", token, hf_lease_owner(lease));
        cli_json_string(stdout, hf_store_url(store));
        printf(", \"ttl_ms\": %" PRIu32 ", \"remaining_ms\": %" PRId64 "}\n",
               hf_lease_ttl_ms(lease), hf_lease_remaining_ms(lease));
    } else {
        cli_export_lease(context, store, lease);
        cli_export("HOLDFAST_OWNER", hf_lease_owner(lease));
    }
    return fflush(stdout) == 0 && !ferror(stdout);
}
