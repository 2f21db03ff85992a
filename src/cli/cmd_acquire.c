/* cmd_acquire.c - holdfast acquire: take a detached lease and hand it to the shell. */
#include "cli/eval.h"

#include "base/base.h"
#include "cli/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUSY_EXIT_MAX = 255 };

struct request {
    const char *name;
    const char *label;
    int64_t ttl_ms; /* 0: what the library chooses */
    int64_t wait_ms;
    uint64_t busy_exit;
    bool no_wait;
    bool wait_given;
    bool ttl_given;
    bool json;
};

/* The request under way. */
struct errand {
    const struct cli_context *context;
    const struct request *request;
    int signal_fd;
    struct run_patience patience;
    struct run_wait wait;
};

static int read_request(struct request *request, int argc, char **argv, bool *answered);
static int acquire(const struct cli_context *context, const struct request *request, int signal_fd);
static int open_store(struct errand *errand);
static int acquire_in_store(struct errand *errand);
static enum hf_status take(struct errand *errand, struct hf_lease **lease, struct hf_error *err);
static bool print_lease(const struct cli_context *context, const struct hf_store *store,
                        struct hf_lease *lease, bool json);

int cmd_acquire(const struct cli_context *context, int argc, char **argv)
{
    struct request request = {.wait_ms = -1, .busy_exit = EXIT_HF_BUSY};
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
        fflush(stdout);
    }
    return number ? cli_die_of(number) : exit_code;
}

static int read_request(struct request *request, int argc, char **argv, bool *answered)
{
    const struct cli_option options[] = {
        {'n', "no-wait", CLI_FLAG, NULL,
         "fail at once if another holds the lock or the store is down", NULL, &request->no_wait,
         NULL},
        {'w', "wait", CLI_DURATION, "DURATION", "wait so long for the lock; by default without end",
         NULL, &request->wait_ms, &request->wait_given},
        {'E', "busy-exit", CLI_NUMBER, "CODE",
         "exit code if another holds the lock; 75 if not given", NULL, &request->busy_exit, NULL},
        {0, "ttl", CLI_DURATION, "DURATION",
         "how long the lease lasts unless renewed; 30s, or what the store grants", NULL,
         &request->ttl_ms, &request->ttl_given},
        {0, "label", CLI_TEXT, "TEXT", "what others see as the holder", NULL, &request->label,
         NULL},
        {0, "json", CLI_FLAG, NULL, "print one JSON object instead of lines for eval", NULL,
         &request->json, NULL},
        {.name = NULL}};
    const struct cli_command *command = cli_find("acquire");
    int parsed = cli_parse_operand(command, options, argc, argv, &request->name);
    *answered = parsed == CLI_HELP_SHOWN;
    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (!request->name)
        return cli_usage_error(command, "the name of the lock is missing");
    if (!cli_check_name(command, request->name))
        return EXIT_HF_USAGE;
    if (request->ttl_given && !cli_check_ttl(command, request->ttl_ms))
        return EXIT_HF_USAGE;
    if (request->busy_exit > BUSY_EXIT_MAX)
        return cli_usage_error(command, "--busy-exit: an exit code is 0 to %d", BUSY_EXIT_MAX);
    if (request->no_wait && request->wait_given)
        return cli_usage_error(command, "--no-wait and --wait exclude each other");
    if (request->no_wait)
        request->wait_ms = 0;
    return 0;
}

static int acquire(const struct cli_context *context, const struct request *request, int signal_fd)
{
    struct errand errand = {.context = context,
                            .request = request,
                            .signal_fd = signal_fd,
                            .patience = run_patience_of(request->wait_ms),
                            .wait = {.voice = run_voice_open(), .name = request->name}};
    if (!errand.wait.voice) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    int exit_code = open_store(&errand);
    if (exit_code == 0)
        exit_code = acquire_in_store(&errand);
    run_wait_end(&errand.wait);
    run_voice_close(errand.wait.voice);
    hf_close(errand.wait.store);
    return exit_code;
}

static int acquire_in_store(struct errand *errand)
{
    const struct request *request = errand->request;
    int exit_code = 0;
    struct hf_lease *lease;
    struct hf_error err;
    enum hf_status status = take(errand, &lease, &err);
    if (status == HF_BUSY) {
        cli_fail(&err);
        exit_code = (int)request->busy_exit;
    } else if (status != HF_OK) {
        exit_code = cli_fail(&err);
    } else if (poll(&(struct pollfd){.fd = errand->signal_fd, .events = POLLIN}, 1, 0) > 0) {
        /* The signal came too late to end the wait; whoever sent it does not want the lock. */
        if (hf_release(lease, &err) != HF_OK)
            cli_fail(&err);
        exit_code = EXIT_HF_BUSY;
    } else if (!print_lease(errand->context, errand->wait.store, lease, request->json)) {
        /* Nobody could renew or release it. */
        cli_error("the lease could not be written to stdout (%s); '%s' is released again",
                  strerror(errno), request->name);
        if (hf_release(lease, &err) != HF_OK)
            cli_fail(&err);
        exit_code = EXIT_HF_INTERNAL;
    } else {
        hf_leave(lease);
    }
    return exit_code;
}

static int open_store(struct errand *errand)
{
    struct run_door door;
    struct hf_error err;
    run_door_open(&door, errand->signal_fd, errand->request->json ? NULL : cli_eval_fails);
    enum hf_status status = run_open_store(errand->context->store_url, &errand->patience,
                                           errand->wait.voice, &errand->wait.store, &err);
    run_door_close(&door);
    return status == HF_OK ? 0 : cli_fail(&err);
}

static void trouble(const struct hf_error *why, void *data)
{
    run_wait_trouble(data, why);
}

static enum hf_status take(struct errand *errand, struct hf_lease **lease, struct hf_error *err)
{
    const struct request *request = errand->request;
    char label[HF_LABEL_MAX + 1];
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = (uint32_t)request->ttl_ms,
                                         .label = request->label ? request->label : label,
                                         .cancel_fd = errand->signal_fd,
                                         .detached = true,
                                         .on_trouble = trouble,
                                         .data = &errand->wait};
    cli_label_of(label, sizeof label, getppid());
    return run_take(&errand->wait, &errand->patience, &options, lease, err);
}

static bool print_lease(const struct cli_context *context, const struct hf_store *store,
                        struct hf_lease *lease, bool json)
{
    char token[24];
    snprintf(token, sizeof token, "%" PRIu64, hf_lease_token(lease));
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
