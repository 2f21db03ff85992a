/* detached.c - takes over the detached leases that `acquire` left in the environment. */
#include "cli/detached.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_MAX = 3 * HF_NAME_MAX + HF_OWNER_LEN + 32 }; /* bytes of one in HOLDFAST_OWNERS */

/* What the environment says. */
struct described {
    const char *name;
    const char *owner;
    uint64_t token;
};

/* The same of several. */
struct owners {
    struct described list[HF_SEVERAL_MAX];
    size_t count;
    char text[HF_SEVERAL_MAX * ENTRY_MAX]; /* where they point to */
};

static bool read_environment(struct described *lease, const struct cli_command *command,
                             const char *name);
static bool read_owners(struct owners *owners, const char *text);
static const char *variable(const char *name);

/* The caller's answer to a lease that is not there any more depends on whether there are others. */
static int adopt(struct cli_detached *detached, const struct described *lease)
{
    struct hf_error err;

    if (hf_adopt(detached->store, lease->name, lease->owner, lease->token,
                 &detached->leases[detached->count], &err) != HF_OK)
        return cli_fail(&err);
    detached->count++;
    return 0;
}

static int adopt_all(struct cli_detached *detached, const struct owners *owners, const char *name)
{
    bool found = false;

    for (size_t i = 0; i < owners->count; i++) {
        int failed;

        if (name != NULL && strcmp(name, owners->list[i].name) != 0)
            continue;
        found = true;
        failed = adopt(detached, &owners->list[i]);
        if (failed)
            detached->exit_code = failed;
    }
    if (!found)
        cli_error("\"%s\" is not one of the locks taken here (HOLDFAST_OWNERS)", name);
    if (detached->count > 0)
        return 0;
    return found ? detached->exit_code : EXIT_HF_USAGE;
}

int cli_detached_open(struct cli_detached *detached, const struct cli_context *context,
                      const struct cli_command *command, const char *name)
{
    const char *several = variable("HOLDFAST_OWNERS");
    struct owners owners = {.count = 0};
    struct described lease;
    int exit_code = 0;

    *detached = (struct cli_detached){.store = NULL};
    if ((name != NULL && !cli_check_name(command, name)) ||
        !(several != NULL ? read_owners(&owners, several)
                          : read_environment(&lease, command, name)))
        return EXIT_HF_USAGE;
    detached->store = cli_open(context, &exit_code);
    if (detached->store == NULL)
        return exit_code;
    exit_code = several != NULL ? adopt_all(detached, &owners, name) : adopt(detached, &lease);
    explicit_bzero(&owners, sizeof owners);
    if (exit_code != 0) {
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

/* One "name,owner,token", taken apart where it stands. */
static bool read_entry(struct described *lease, char *text)
{
    unsigned char owner[HF_OWNER_LEN / 2];
    char *name = strsep(&text, ",");

    lease->name = name;
    lease->owner = strsep(&text, ",");
    return lease->owner != NULL && text != NULL && hf__url_decode(name) && hf__name_valid(name) &&
           hf__hex_decode(owner, sizeof owner, lease->owner) &&
           hf__parse_u64(text, &lease->token) && lease->token != 0;
}

static bool read_owners(struct owners *owners, const char *text)
{
    char *rest = owners->text;
    char *entry;

    (void)snprintf(owners->text, sizeof owners->text, "%s", text);
    while ((entry = strsep(&rest, " ")) != NULL) {
        if (owners->count == HF_SEVERAL_MAX || !read_entry(&owners->list[owners->count], entry)) {
            cli_error("HOLDFAST_OWNERS makes no sense: it must be what \"acquire\" printed");
            return false;
        }
        owners->count++;
    }
    return true;
}

char *cli_owners_text(struct hf_lease *const *leases, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; out != NULL && i < count; i++) {
        char name[3 * HF_NAME_MAX + 1];

        (void)hf__url_encode(name, sizeof name, hf_lease_name(leases[i]));
        fprintf(out, "%s%s,%s,%" PRIu64, i > 0 ? " " : "", name, hf_lease_owner(leases[i]),
                hf_lease_token(leases[i]));
    }
    if (out != NULL && fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
