/* cmd_acquire.c - holdfast acquire: take a detached lease and hand it to the shell. */
#include "cli/detached.h"
#include "cli/say/eval.h"
#include "cli/say/tokens.h"

#include "base/base.h"
#include "cli/audit/audit.h"
#include "cli/take/take.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request {
    struct take_names names;
    struct take_options given;
    struct audit_require require;
    bool json;
};

/* The request under way. */
struct acquiring {
    const struct cli_context *context;
    struct request *request;
    struct take take;
};

static int read_request(struct request *request, int argc, char **argv, bool *answered);
static int acquire(const struct cli_context *context, struct request *request, int signal_fd);
static int acquire_in_store(struct acquiring *acquiring);
static int hand_over(struct acquiring *acquiring);
static bool print_leases(const struct acquiring *acquiring);

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

const struct cli_command command_acquire = {"acquire", "[options] NAME...",
                                            "take a lock and print what renews and releases it",
                                            acquire_main};

static int read_request(struct request *request, int argc, char **argv, bool *answered)
{
    const struct cli_option options[] = {TAKE_NAMES_OPTIONS(&request->names),
                                         TAKE_OPTIONS(&request->given),
                                         AUDIT_REQUIRE_OPTIONS(&request->require),
                                         CLI_JSON_OPTION(&request->json),
                                         {.name = NULL}};
    struct cli_operands operands = {.most = CLI_OPERANDS_MAX};
    int parsed = cli_parse_operands(&command_acquire, options, argc, argv, &operands);
    int bad;

    *answered = parsed == CLI_HELP_SHOWN;
    if (parsed < 0)
        return cli_parse_exit(parsed);
    bad = take_find_names(&command_acquire, &request->names, operands.words, operands.count);
    if (bad == 0)
        bad = take_check(&command_acquire, request->names.list[0], &request->given);
    return bad ? bad : audit_require_check(&command_acquire, &request->require);
}

/* The label is that of the script that asks: we are gone when somebody reads it. */
static int acquire(const struct cli_context *context, struct request *request, int signal_fd)
{
    struct acquiring acquiring = {.context = context,
                                  .request = request,
                                  .take = {.writer = cli_stderr_open(),
                                           .name = request->names.list[0],
                                           .names = request->names.list,
                                           .count = request->names.count,
                                           .kind = request->names.kind,
                                           .label = request->given.label,
                                           .label_pid = getppid(),
                                           .signal_fd = signal_fd,
                                           .last_words = request->json ? NULL : cli_eval_fails}};
    struct take *take = &acquiring.take;
    struct hf_error err;
    enum hf_status status;
    int exit_code;

    if (take->writer == NULL) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    status = take_open(take, context->store_url, request->given.wait_ms, &err);
    exit_code = status == HF_OK ? acquire_in_store(&acquiring) : cli_fail(&err);
    take_end(take);
    cli_stderr_close(take->writer);
    hf_close(take->store);
    return exit_code;
}

/* 0, or the exit code after a message. */
static int carries_what_is_required(struct acquiring *acquiring, uint32_t ttl_ms)
{
    const struct audit_lock lock = {.name = acquiring->request->names.list[0],
                                    .url = acquiring->context->store_url,
                                    .ttl_ms = ttl_ms,
                                    .writer = acquiring->take.writer};
    char why[AUDIT_WHY_SIZE];

    return audit_require_met(&acquiring->request->require, &lock, why);
}

static int acquire_in_store(struct acquiring *acquiring)
{
    const struct take_options *given = &acquiring->request->given;
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = given->ttl_given ? (uint32_t)given->ttl_ms : 0,
                                         .detached = true};
    struct hf_lease *lease;
    struct hf_error err;
    enum hf_status status;
    int exit_code = carries_what_is_required(acquiring, 0);

    if (exit_code)
        return exit_code;
    status = take_lock(&acquiring->take, &options, &lease, &err);
    if (status == HF_OK)
        return hand_over(acquiring);
    exit_code = cli_fail(&err);
    return status == HF_BUSY ? (int)given->busy_exit : exit_code;
}

/* A lease that nobody could renew or release is given back. */
static int hand_over(struct acquiring *acquiring)
{
    struct take *take = &acquiring->take;
    int exit_code = EXIT_HF_BUSY;
    int bad = carries_what_is_required(acquiring, hf_lease_ttl_ms(take->leases[0]));
    struct hf_error err;

    if (bad) {
        exit_code = bad; /* it is not the server from before the wait */
    } else if (poll(&(struct pollfd){.fd = take->signal_fd, .events = POLLIN}, 1, 0) > 0) {
        /* The signal came too late to end the wait; whoever sent it does not want the lock. */
    } else if (print_leases(acquiring)) {
        for (size_t i = 0; i < take->taken; i++)
            hf_leave(take->leases[i]);
        return 0;
    } else {
        take_say_not_written(hf_lease_name(take->leases[0]));
        exit_code = EXIT_HF_INTERNAL;
    }
    if (take_give_back(take, &err) != HF_OK)
        (void)cli_fail(&err);
    return exit_code;
}

static void print_json(const struct acquiring *acquiring, struct hf_lease *lease)
{
    uint64_t slot;

    fputs("{\"name\": ", stdout);
    cli_json_string(stdout, hf_lease_name(lease));
    printf(", \"token\": %" PRIu64 ", \"owner\": \"%s\", \"store\": ", hf_lease_token(lease),
           hf_lease_owner(lease));
    cli_json_string(stdout, hf_store_url(acquiring->take.store));
    printf(", \"ttl_ms\": %" PRIu32 ", \"remaining_ms\": %" PRId64, hf_lease_ttl_ms(lease),
           hf_lease_remaining_ms(lease));
    if (take_slot_of(&acquiring->request->names, hf_lease_name(lease), &slot))
        printf(", \"slot\": %" PRIu64, slot);
    putchar('}');
}

static bool export_text(const char *variable, char *text)
{
    if (text != NULL)
        cli_export(variable, text);
    free(text);
    return text != NULL;
}

/* HOLDFAST_TOKENS, and what renew and release need to know of several locks; HOLDFAST_SLOT. */
static bool export_several(const struct take *take, const struct take_names *names)
{
    struct cli_token tokens[HF_SEVERAL_MAX];
    char number[24];
    uint64_t slot;
    bool good = true;

    for (size_t i = 0; i < take->taken; i++)
        tokens[i] =
            (struct cli_token){hf_lease_name(take->leases[i]), hf_lease_token(take->leases[i])};
    if (names->all || names->any || names->slots_given)
        good = export_text("HOLDFAST_TOKENS", cli_tokens_text(tokens, take->taken));
    if (take->kind == TAKE_ALL)
        good = good && export_text("HOLDFAST_OWNERS", cli_owners_text(take->leases, take->taken));
    if (take_slot_of(names, hf_lease_name(take->leases[0]), &slot)) {
        (void)snprintf(number, sizeof number, "%" PRIu64, slot);
        cli_export("HOLDFAST_SLOT", number);
    }
    return good;
}

/* With --all an array of all. */
static bool print_leases(const struct acquiring *acquiring)
{
    const struct take *take = &acquiring->take;
    bool all = acquiring->request->names.all;

    if (acquiring->request->json) {
        fputs(all ? "[" : "", stdout);
        for (size_t i = 0; i < take->taken; i++) {
            fputs(i > 0 ? ",\n " : "", stdout);
            print_json(acquiring, take->leases[i]);
        }
        puts(all ? "]" : "");
        return fflush(stdout) == 0 && !ferror(stdout);
    }
    cli_export_lease(acquiring->context, take->store, take->leases[0]);
    cli_export("HOLDFAST_OWNER", hf_lease_owner(take->leases[0]));
    if (!export_several(take, &acquiring->request->names)) {
        errno = ENOMEM;
        return false;
    }
    return fflush(stdout) == 0 && !ferror(stdout);
}
