/* detached.c - takes over the detached lease that `acquire` left in the environment. */
#include "cli/detached.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* What the environment says. */
struct described {
    const char *name;
    const char *owner;
    uint64_t token;
};

static bool read_environment(struct described *lease, const struct cli_command *command,
                             const char *name);

int cli_detached_open(struct cli_detached *detached, const struct cli_context *context,
                      const struct cli_command *command, const char *name)
{
    struct described lease;
    struct hf_error err;
    int exit_code = 0;

    *detached = (struct cli_detached){.store = NULL};
    if ((name != NULL && !cli_check_name(command, name)) ||
        !read_environment(&lease, command, name))
        return EXIT_HF_USAGE;
    detached->store = cli_open(context, &exit_code);
    if (detached->store == NULL)
        return exit_code;
    if (hf_adopt(detached->store, lease.name, lease.owner, lease.token, &detached->lease, &err) !=
        HF_OK) {
        exit_code = cli_fail(&err);
        hf_close(detached->store);
        detached->store = NULL;
    }
    return exit_code;
}

static const char *variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The owner is a secret, so that no message repeats what the variable holds. */
static bool read_environment(struct described *lease, const struct cli_command *command,
                             const char *name)
{
    unsigned char owner[HF_OWNER_LEN / 2];
    const char *token = variable("HOLDFAST_TOKEN");

    lease->name = variable("HOLDFAST_NAME");
    lease->owner = variable("HOLDFAST_OWNER");
    lease->token = 0;

    if (lease->owner == NULL && lease->name != NULL && token != NULL)
        cli_error("HOLDFAST_OWNER is not set: \"%s\" was not taken with \"acquire\" here "
                  "(\"run\" renews and releases its lock by itself)",
                  lease->name);
    else if (lease->name == NULL || token == NULL || lease->owner == NULL)
        cli_error("%s is not set: take the lock with: eval \"$(holdfast acquire NAME)\"",
                  lease->name == NULL ? "HOLDFAST_NAME"
                  : token == NULL     ? "HOLDFAST_TOKEN"
                                      : "HOLDFAST_OWNER");
    else if (name != NULL && strcmp(name, lease->name) != 0)
        cli_error("the lock taken here is \"%s\" (HOLDFAST_NAME), not \"%s\"", lease->name, name);
    else if (!hf__parse_u64(token, &lease->token) || lease->token == 0)
        cli_error("HOLDFAST_TOKEN is not a token: it must be what \"acquire\" printed");
    else if (!hf__hex_decode(owner, sizeof owner, lease->owner))
        cli_error("HOLDFAST_OWNER is not an owner: it must be what \"acquire\" printed");
    else
        return cli_check_name(command, lease->name);
    return false;
}
