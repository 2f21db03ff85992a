/* help.c - what --help prints, of one command and of a group of them. */
#include "cli/help.h"

#include <ctype.h>
#include <string.h>

enum {
    HELP_WIDTH = 26,  /* column at which the help of an option starts */
    OPTIONS_MAX = 64, /* of a group */
    NAMED_MAX = 2,    /* an option of more commands than that is shown without them */
    HELP_MAX = 160    /* bytes */
};

const struct cli_option cli_help_option = {
    .letter = 'h', .name = "help", .kind = CLI_FLAG, .help = "show this help"};

/* An option of a group's commands. */
struct shared_option {
    struct cli_option option;
    const char *commands[NAMED_MAX];
    size_t count;
};

struct collection {
    struct shared_option options[OPTIONS_MAX];
    size_t count;
};

/* A command's table has its targets, so it is there only while the command runs. */
static struct collection *collecting;

static void collect(const struct cli_command *command, const struct cli_option *options);

const char *cli_last_word(const struct cli_command *command)
{
    const char *space = strrchr(command->name, ' ');

    return space != NULL ? space + 1 : command->name;
}

static void print_option(const struct cli_option *option)
{
    char head[64];

    (void)snprintf(head, sizeof head, "  %c%c%c --%s%s%s", option->letter != '\0' ? '-' : ' ',
                   option->letter != '\0' ? option->letter : ' ',
                   option->letter != '\0' ? ',' : ' ', option->name,
                   option->argument != NULL ? " " : "",
                   option->argument != NULL ? option->argument : "");
    if (strlen(head) < HELP_WIDTH)
        printf("%-*s %s\n", HELP_WIDTH, head, option->help);
    else
        printf("%s\n%*s %s\n", head, HELP_WIDTH, "", option->help);
}

static void print_heading(const struct cli_command *command)
{
    printf("usage: holdfast %s %s\n\n", command->name, command->arguments);
    printf("%c%s.\n\n", toupper((unsigned char)command->summary[0]), command->summary + 1);
}

static void print_ending(const struct cli_command *command)
{
    printf("See \"man holdfast-%.*s\" for more.\n", (int)strcspn(command->name, " "),
           command->name);
}

void cli_print_help(const struct cli_command *command, const struct cli_option *options)
{
    if (collecting != NULL) {
        collect(command, options);
        return;
    }
    print_heading(command);
    puts("options:");
    for (; options->name != NULL; options++)
        print_option(options);
    print_option(&cli_help_option);
    putchar('\n');
    print_ending(command);
}

/* The place of an option: where it is already, behind one of the same name, or at the end. */
static struct shared_option *place_of(const struct cli_option *option, bool *found)
{
    size_t at = collecting->count;

    *found = false;
    for (size_t i = 0; i < collecting->count; i++) {
        const struct cli_option *known = &collecting->options[i].option;

        if (strcmp(known->name, option->name) != 0)
            continue;
        *found = strcmp(known->help, option->help) == 0;
        at = *found ? i : i + 1;
        if (*found)
            break;
    }
    return &collecting->options[at];
}

static void collect(const struct cli_command *command, const struct cli_option *options)
{
    for (; options->name != NULL && collecting->count < OPTIONS_MAX; options++) {
        bool found;
        struct shared_option *place = place_of(options, &found);

        if (!found) {
            size_t behind = (size_t)(collecting->options + collecting->count - place);

            memmove(place + 1, place, behind * sizeof *place);
            *place = (struct shared_option){.option = *options};
            collecting->count++;
        }
        if (place->count < NAMED_MAX)
            place->commands[place->count] = cli_last_word(command);
        place->count++;
    }
}

static void print_shared(const struct shared_option *shared, size_t commands)
{
    struct cli_option option = shared->option;
    char help[HELP_MAX];

    if (shared->count <= NAMED_MAX && shared->count < commands) {
        (void)snprintf(help, sizeof help, "%s%s%s: %s", shared->commands[0],
                       shared->count > 1 ? ", " : "", shared->count > 1 ? shared->commands[1] : "",
                       option.help);
        option.help = help;
    }
    print_option(&option);
}

void cli_print_group_help(const struct cli_group *group, const struct cli_context *context)
{
    struct collection collection = {.count = 0};
    char help[] = "--help";
    size_t count = 0;
    size_t longest = 0;

    collecting = &collection;
    for (; group->commands[count] != NULL; count++) {
        const struct cli_command *command = group->commands[count];
        char *words[] = {(char *)cli_last_word(command), help, NULL};
        size_t len = strlen(words[0]);

        longest = len > longest ? len : longest;
        (void)command->main(context, 2, words);
    }
    collecting = NULL;

    print_heading(group->command);
    puts("commands:");
    for (size_t i = 0; i < count; i++)
        printf("  %-*s  %s\n", (int)longest, cli_last_word(group->commands[i]),
               group->commands[i]->summary);
    puts(count > 1 ? "\noptions, where they make sense:" : "\noptions:");
    for (size_t i = 0; i < collection.count; i++)
        print_shared(&collection.options[i], count);
    print_option(&cli_help_option);
    printf("\n%s\n", group->example);
    print_ending(group->command);
}
