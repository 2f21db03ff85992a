/* cmd_trap.c - `holdfast trap`: springs the trap that a lock alone cannot avoid, with real
 * processes on the user's own store, first against a plain file and then against a fenced one.
 *
 * Two workers each add a deposit to an account. Worker 1 takes the lock, reads, makes sure that its
 * lease is valid, and is frozen before it writes. Its lease ends; worker 2 does its work. Then
 * worker 1 thaws and writes what it had in mind. */
#include "cli/cli.h"
#include "cli/say/svg.h"
#include "cli/trap/trap.h"

#include "base/base.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TTL_DEFAULT_MS = 1000,
    TRAP_FAILED = 1 /* exit: the trap did not show what it should */
};

static void note(struct trap_run *run, enum trap_step step, int64_t start_ns)
{
    run->at_ms[step] = (hf__now_ns() - start_ns) / HF__NS_PER_MS;
}

/* The story, step by step. */
static enum hf_status play(const struct trap_stage *stage, struct trap_worker *one,
                           struct trap_worker *two, struct trap_run *run, struct hf_error *err)
{
    int64_t start_ns = hf__now_ns();
    struct trap_answer answer = {.status = HF_OK};
    enum hf_status status = trap_tell(stage, one, TRAP_ORDER_TAKE, &answer, err);

    run->token_1 = answer.token;
    note(run, TRAP_TAKES_1, start_ns);
    if (status == HF_OK)
        status = trap_tell(stage, one, TRAP_ORDER_READ, &answer, err);
    run->read_1 = answer.balance;
    run->left_ms = answer.left_ms;
    note(run, TRAP_READS_1, start_ns);
    if (status == HF_OK)
        status = trap_freeze(one, err);
    note(run, TRAP_FREEZES, start_ns);
    run->at_ms[TRAP_EXPIRES] = run->at_ms[TRAP_READS_1] + run->left_ms;
    if (status == HF_OK)
        status = trap_tell(stage, two, TRAP_ORDER_TAKE, &answer, err);
    run->token_2 = answer.token;
    note(run, TRAP_TAKES_2, start_ns);
    if (status == HF_OK)
        status = trap_tell(stage, two, TRAP_ORDER_READ, &answer, err);
    run->read_2 = answer.balance;
    note(run, TRAP_READS_2, start_ns);
    if (status == HF_OK)
        status = trap_tell(stage, two, TRAP_ORDER_WRITE, &answer, err);
    note(run, TRAP_WRITES_2, start_ns);
    if (status != HF_OK)
        return status;
    (void)cli_kill(one->pid, SIGCONT);
    note(run, TRAP_THAWS, start_ns);
    status = trap_tell(stage, one, TRAP_ORDER_WRITE, &answer, err);
    note(run, TRAP_WRITES_1, start_ns);
    run->refused = status == HF_STALE;
    if (run->refused)
        memcpy(run->refusal, answer.text, sizeof run->refusal);
    if (status != HF_OK && status != HF_STALE)
        return status;
    return trap_read_account(stage->account, &run->final_balance, err);
}

/* A folder of its own, with the account in it. */
static bool build_stage(struct trap_stage *stage)
{
    const char *tmp = secure_getenv("TMPDIR");
    char text[32];
    struct hf_error err;

    (void)snprintf(stage->lock, sizeof stage->lock, "holdfast-trap-%ld-%s", (long)getpid(),
                   stage->fenced ? "fenced" : "plain");
    (void)snprintf(stage->dir, sizeof stage->dir, "%s/holdfast-trap-XXXXXX",
                   tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    if (mkdtemp(stage->dir) == NULL) {
        cli_error("cannot create the folder %s: %s", stage->dir, strerror(errno));
        return false;
    }
    (void)snprintf(stage->account, sizeof stage->account, "%s/account", stage->dir);
    (void)snprintf(text, sizeof text, "%d\n", TRAP_START);
    if (trap_write_plainly(stage->account, text, &err) == HF_OK)
        return true;
    cli_error("%s", err.text);
    (void)rmdir(stage->dir);
    return false;
}

static void strike_stage(const struct trap_stage *stage)
{
    static const char *const files[] = {"account", "account.new", ".account.fence",
                                        ".account.fence-new"};
    char path[TRAP_PATH_SIZE];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", stage->dir, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(stage->dir);
}

/* One springing; 0, or the exit code after a message. */
static int spring(const struct trap_stage *like, bool fenced, struct trap_run *run)
{
    struct trap_stage stage = *like;
    struct trap_worker one = {.pid = 0};
    struct trap_worker two = {.pid = 0};
    struct hf_error err;
    enum hf_status status;

    stage.fenced = fenced;
    *run = (struct trap_run){.fenced = fenced};
    if (!build_stage(&stage))
        return EXIT_HF_UNAVAILABLE;
    if (trap_start_worker(&one, &stage, TRAP_DEPOSIT_1) &&
        trap_start_worker(&two, &stage, TRAP_DEPOSIT_2))
        status = play(&stage, &one, &two, run, &err);
    else
        status = hf__fail(&err, HF_NOMEM, "cannot start a worker: %s", strerror(errno));
    trap_end_worker(&two, status == HF_CANCELLED);
    trap_end_worker(&one, status == HF_CANCELLED);
    strike_stage(&stage);
    return status == HF_OK ? 0 : cli_fail(&err);
}

bool trap_sprung(const struct trap_run *run)
{
    if (run->fenced)
        return run->refused && run->final_balance == TRAP_START + TRAP_DEPOSIT_2;
    return !run->refused && run->final_balance == TRAP_START + TRAP_DEPOSIT_1;
}

/* Both springings, told and drawn; the exit code. */
static int play_both(const struct trap_stage *stage, FILE *svg)
{
    bool colour = isatty(STDOUT_FILENO) && secure_getenv("NO_COLOR") == NULL;
    struct trap_run runs[2];
    char shown[256];
    char ttl_text[32];

    hf__url_redact(shown, sizeof shown, stage->url);
    printf("Two workers, one lock in %s with a ttl of %s, one account with %d in it.\n", shown,
           hf__format_duration(ttl_text, sizeof ttl_text, stage->ttl_ms), TRAP_START);
    for (int i = 0; i < 2; i++) {
        int failed = spring(stage, i == 1, &runs[i]);

        if (failed != 0)
            return failed;
        trap_print(stdout, &runs[i], colour);
    }
    if (svg != NULL && !trap_draw(svg, runs, shown, stage->ttl_ms)) {
        cli_error("cannot write the picture: %s", strerror(errno));
        return EXIT_HF_UNAVAILABLE;
    }
    return trap_sprung(&runs[0]) && trap_sprung(&runs[1]) ? 0 : TRAP_FAILED;
}

/* If something is wrong with the store, the workers will say so. */
static void fit_to_store(struct trap_stage *stage)
{
    struct hf_store *store;

    if (hf_open_readonly(stage->url, &store, NULL) != HF_OK)
        return;
    if (hf_store_max_ttl_ms(store) < stage->ttl_ms)
        stage->ttl_ms = hf_store_max_ttl_ms(store);
    hf_close(store);
}

static int trap_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_trap = {
    "trap", "[options]", "show on your own store why a lock alone is not enough", trap_main};

static int trap_main(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_command *command = &command_trap;
    struct trap_stage stage = {.url = context->store_url, .ttl_ms = TTL_DEFAULT_MS};
    char own_url[CLI_URL_SIZE];
    bool has_url = false;
    bool ttl_given = false;
    const char *path = NULL;
    FILE *svg = NULL;
    const struct cli_option options[] = {
        {0, "store", CLI_URL, "URL", "the store to try it on; default: as for all commands", NULL,
         own_url, &has_url},
        {0, "ttl", CLI_DURATION, "DURATION",
         "how long a lease lasts; default: 1s, or what the store grants", NULL, &stage.ttl_ms,
         &ttl_given},
        {0, "svg", CLI_TEXT, "FILE", "also draw it", NULL, &path, NULL},
        {.name = NULL}};
    int first = cli_parse(command, options, argc, argv, NULL);
    int exit_code;
    int number;

    if (first < 0)
        return cli_parse_exit(first);
    if (first < argc)
        return cli_one_too_many(command, argv[first]);
    if (!cli_check_ttl(command, stage.ttl_ms))
        return EXIT_HF_USAGE;
    if (has_url)
        stage.url = own_url;
    if (stage.url == NULL || stage.url[0] == '\0')
        stage.url = "file:";
    if (path != NULL && (svg = cli_svg_open(path)) == NULL)
        return EXIT_HF_UNAVAILABLE;
    if (!ttl_given)
        fit_to_store(&stage);
    stage.stop_fd = cli_catch_signals();
    exit_code = stage.stop_fd >= 0 ? play_both(&stage, svg) : EXIT_HF_INTERNAL;
    if (svg != NULL)
        (void)fclose(svg);
    number = exit_code != 0 ? cli_pending_signal(stage.stop_fd) : 0;
    return number != 0 ? cli_die_of(number) : exit_code;
}
