/* names.c - which locks a command is about: one, all of several, one of several, a slot. */
#include "cli/take/take.h"

#include "base/base.h"

#include <inttypes.h>
#include <string.h>

static int make_slots(const struct cli_command *command, struct take_names *names,
                      const char *name);

static int too_many(const struct cli_command *command, const char *word)
{
    struct cli_shown shown;

    return cli_usage_error(command,
                           "unexpected \"%s\"; several locks are taken with --all or --any",
                           cli_shown(&shown, word));
}

/* The first that is there a second time, NULL if none is. */
static const char *find_twice(const struct take_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        for (size_t j = i + 1; j < names->count; j++)
            if (strcmp(names->list[i], names->list[j]) == 0)
                return names->list[i];
    return NULL;
}

static int check(const struct cli_command *command, const struct take_names *names, size_t count)
{
    if (names->all && names->any)
        return cli_usage_error(command, "--all and --any cannot be used together");
    if (names->slots_given && (names->all || names->any))
        return cli_usage_error(command, "--slots cannot be used with --all or --any");
    if (names->slot_given && !names->slots_given)
        return cli_usage_error(command, "--slot needs --slots");
    if (count == 0)
        return cli_usage_error(command, "the name of the lock is missing");
    if (count > HF_SEVERAL_MAX)
        return cli_usage_error(command, "at most %d locks can be taken at once", HF_SEVERAL_MAX);
    return 0;
}

int take_find_names(const struct cli_command *command, struct take_names *names, char *const *words,
                    size_t count)
{
    int bad = check(command, names, count);
    const char *twice;

    if (bad)
        return bad;
    if (count > 1 && !names->all && !names->any)
        return too_many(command, words[1]);
    if (names->slots_given)
        return make_slots(command, names, words[0]);
    names->kind = names->all ? TAKE_ALL : names->any ? TAKE_ANY : TAKE_ONE;
    names->count = count;
    for (size_t i = 0; i < count; i++) {
        names->list[i] = words[i];
        if (!cli_check_name(command, words[i]))
            return EXIT_HF_USAGE;
    }
    twice = find_twice(names);
    if (twice != NULL)
        return cli_usage_error(command, "lock \"%s\" is named twice", twice);
    /* All of one lock, or one of one, is simply that lock. */
    if (count == 1)
        names->kind = TAKE_ONE;
    return 0;
}

static int make_slots(const struct cli_command *command, struct take_names *names, const char *name)
{
    uint64_t first = names->slot_given ? names->slot : 0;

    if (names->slots < 1 || names->slots > HF_SEVERAL_MAX)
        return cli_usage_error(command, "--slots: 1 to %d", HF_SEVERAL_MAX);
    if (names->slot_given && names->slot >= names->slots)
        return cli_usage_error(command, "--slot: 0 to %" PRIu64 ": there are %" PRIu64 " slots",
                               names->slots - 1, names->slots);
    names->count = names->slot_given ? 1 : (size_t)names->slots;
    names->kind = names->count == 1 ? TAKE_ONE : TAKE_ANY;
    for (size_t i = 0; i < names->count; i++) {
        int len = snprintf(names->text[i], sizeof names->text[i], "%s#%" PRIu64, name, first + i);

        if (!cli_check_name(command, name))
            return EXIT_HF_USAGE;
        if (len < 0 || (size_t)len >= sizeof names->text[i])
            return cli_usage_error(command, "the name is too long for slots: at most %d bytes",
                                   HF_NAME_MAX - 3);
        names->list[i] = names->text[i];
    }
    return 0;
}

void take_show_names(const struct take_names *names, char out[TAKE_SHOWN_SIZE])
{
    const char *name = names->list[0];

    if (names->kind == TAKE_ONE)
        (void)snprintf(out, TAKE_SHOWN_SIZE, "%s", name);
    else if (names->slots_given)
        (void)snprintf(out, TAKE_SHOWN_SIZE, "%s..%zu", name, names->count - 1);
    else
        (void)snprintf(out, TAKE_SHOWN_SIZE, "%s %s %zu more", name,
                       names->kind == TAKE_ALL ? "and" : "or one of", names->count - 1);
}

bool take_slot_of(const struct take_names *names, const char *name, uint64_t *slot)
{
    const char *mark = strrchr(name, '#');

    return names->slots_given && mark != NULL && hf__parse_u64(mark + 1, slot);
}
