/* take.c - waiting for the store, and then for the lock, within one limit.
 *
 * A store that is down at the start may come back, as may one that goes down later. hf_acquire
 * waits the second one out; here the same rule is applied to the first. */
#include "cli/take/take.h"

#include "base/base.h"
#include "client/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_MAX = 64, COMMAND_MAX = 31 };

static bool goes_on(const struct take *take, enum hf_status status);

/* Once for each kind of trouble. */
static void opening_trouble(const struct hf_error *why, void *data)
{
    struct take *take = data;

    if (take->trouble == why->code)
        return;
    take->trouble = why->code;
    take_say_trouble(take, why);
    if (take->on_wait != NULL)
        take->on_wait(take, why);
}

enum hf_status take_open(struct take *take, const char *url, int64_t wait_ms, struct hf_error *err)
{
    struct take_startup startup;
    struct hf_open_options options = {
        .size = sizeof options, .wait_ms = wait_ms, .on_trouble = opening_trouble, .data = take};
    enum hf_status status;

    take->url = url;
    take_describe(take, take->shown_label, sizeof take->shown_label);
    take->wait_ms = wait_ms;
    take->until_ns = hf__wait_begin(wait_ms).until_ns;
    take_startup_begin(&startup, take->signal_fd, take->last_words);
    status = hf_open_waiting(url, &options, &take->store, err);
    if (status == HF_OK && err->text[0] != '\0')
        cli_stderr_say(take->writer, "warning: %s", err->text);
    if (status == HF_OK && take->on_open != NULL)
        take->on_open(take);
    take_startup_end(&startup);
    take->trouble = HF_OK;
    return status;
}

struct hf_open_options take_waiting(struct take *take)
{
    return (struct hf_open_options){
        .cancel_fd = take->signal_fd, .on_trouble = opening_trouble, .data = take};
}

static void trouble(const struct hf_error *why, void *data)
{
    take_tell_trouble(data, why);
}

static void renewed(struct hf_lease *lease, int64_t remaining_ms, void *data)
{
    struct take *take = data;

    (void)remaining_ms; /* is a moment old already */
    take->on_renewed(lease, take->data);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(hf_lease_name(*(struct hf_lease *const *)a),
                  hf_lease_name(*(struct hf_lease *const *)b));
}

/* The call that the names ask for. */
static enum hf_status acquire(struct take *take, const struct hf_acquire_options *options,
                              struct hf_error *err)
{
    enum hf_status status;
    size_t which;

    take->taken = 0;
    switch (take->kind) {
    case TAKE_ONE:
        status = hf_acquire(take->store, take->name, options, &take->leases[0], err);
        break;
    case TAKE_ANY:
        status = hf_acquire_any(take->store, take->names, take->count, options, &take->leases[0],
                                &which, err);
        break;
    case TAKE_ALL:
    default:
        status = hf_acquire_all(take->store, take->names, take->count, options, take->leases, err);
        break;
    }
    if (status == HF_OK) {
        take->taken = take->kind == TAKE_ALL ? take->count : 1;
        qsort(take->leases, take->taken, sizeof take->leases[0], by_name);
    }
    return status;
}

enum hf_status take_give_back(struct take *take, struct hf_error *err)
{
    enum hf_status status = hf_release_all(take->leases, take->taken, err);

    take->taken = 0;
    return status;
}

void take_say_not_released(struct cli_stderr *writer, const char *name, const struct hf_error *err)
{
    cli_stderr_say(writer,
                   "lock \"%s\" could not be released; it will be free when its ttl ends: %s", name,
                   err->text);
}

void take_say_not_written(const char *name)
{
    cli_error("the lease could not be written to stdout (%s); lock \"%s\" is released again",
              strerror(errno), name);
}

/* The first try does not wait: if it succeeds, nobody needs to be told for whom we wait. */
enum hf_status take_lock(struct take *take, struct hf_acquire_options *options,
                         struct hf_lease **out, struct hf_error *err)
{
    enum hf_status status;

    options->label = take->shown_label;
    options->cancel_fd = take->signal_fd;
    options->on_trouble = trouble;
    options->on_renewed = take->on_renewed != NULL ? renewed : NULL;
    options->data = take;
    options->wait_above = take->wait_above;
    options->wait_ms = 0;
    status = acquire(take, options, err);
    *out = take->taken > 0 ? take->leases[0] : NULL;
    if (!goes_on(take, status))
        return status;
    options->wait_ms = hf__wait_left_ms(take->until_ns);
    if (options->wait_ms == 0)
        return status;
    if (take->on_wait)
        take->on_wait(take, err);
    take_tell_begin(take);
    if (status != HF_BUSY)
        take_tell_trouble(take, err);
    status = acquire(take, options, err);
    *out = take->taken > 0 ? take->leases[0] : NULL;
    take_tell_hush(take);
    return status;
}

static bool goes_on(const struct take *take, enum hf_status status)
{
    bool may_pass = status == HF_BUSY || hf__wait_may_pass(status);

    return may_pass && take->until_ns != 0;
}

static void find_command(char *out, size_t size, pid_t pid)
{
    char path[32];
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    file = fopen(path, "re");
    if (file != NULL && fgets(out, (int)size, file) == NULL)
        out[0] = '\0';
    if (file != NULL)
        (void)fclose(file);
    out[strcspn(out, "\n")] = '\0';
}

/* "host/pid/command". Not the arguments: there may be a password among them. */
void take_describe(const struct take *take, char *out, size_t size)
{
    char host[HOST_MAX + 1] = "localhost";
    char found[COMMAND_MAX + 1] = "";
    const char *command = take->label_cmd != NULL ? take->label_cmd : found;
    const char *slash = strrchr(command, '/');

    if (take->label != NULL) {
        hf__copy_printable(out, size, take->label);
        return;
    }
    (void)gethostname(host, sizeof host - 1);
    if (take->label_cmd == NULL)
        find_command(found, sizeof found, take->label_pid);
    if (slash != NULL && slash[1] != '\0')
        command = slash + 1;
    (void)snprintf(out, size, "%s/%d/%s", host, (int)take->label_pid,
                   command[0] != '\0' ? command : "?");
}
