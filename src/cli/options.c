/* options.c - reads a command's options by its table, and helps with those that are not in it. */
#include "cli/cli.h"
#include "cli/help.h"

#include "base/base.h"

#include <string.h>

enum {
    OPTIONS_MAX = CLI_SUGGEST_MAX, /* options of one command */
    SUGGEST_EDITS_MAX = 2,         /* a word further away than this is another word */
    SUGGEST_WORD_MAX = 64          /* longer words are no typing mistakes */
};

/* The words being read. */
struct parser {
    const struct cli_command *command;
    const struct cli_option *options;
    int argc;
    char **argv;
    int next; /* the word to look at next */
};

enum { PARSE_GO_ON = 0, PARSE_ERROR = -1, PARSE_HELP = CLI_HELP_SHOWN };

static int parse_long(struct parser *p, char *word);
static int parse_letters(struct parser *p, char *word);
static int take(struct parser *p, const struct cli_option *option, char *value);
static int unknown_long(struct parser *p, const char *name);
static const struct cli_option *find_long(struct parser *p, const char *name, size_t len,
                                          bool *ambiguous);
static const struct cli_option *find_letter(struct parser *p, char letter);

int cli_parse(const struct cli_command *command, const struct cli_option *options, int argc,
              char **argv, bool *saw_dashes)
{
    struct parser p = {
        .command = command, .options = options, .argc = argc, .argv = argv, .next = 1};

    if (saw_dashes != NULL)
        *saw_dashes = false;
    while (p.next < argc) {
        char *word = argv[p.next];
        int result;

        if (word[0] != '-' || word[1] == '\0')
            break;
        p.next++;
        if (strcmp(word, "--") == 0) {
            if (saw_dashes != NULL)
                *saw_dashes = true;
            break;
        }
        result = word[1] == '-' ? parse_long(&p, word + 2) : parse_letters(&p, word + 1);
        if (result != PARSE_GO_ON)
            return result;
    }
    return p.next;
}

int cli_parse_operands(const struct cli_command *command, const struct cli_option *options,
                       int argc, char **argv, struct cli_operands *out)
{
    bool dashes = false;

    out->count = 0;
    for (int at = 0; at < argc;) {
        int first = dashes ? 1 : cli_parse(command, options, argc - at, argv + at, &dashes);

        if (first < 0)
            return first;
        at += first;
        if (at >= argc)
            break;
        if (out->count == out->most) {
            (void)cli_one_too_many(command, argv[at]);
            return PARSE_ERROR;
        }
        out->words[out->count++] = argv[at];
    }
    return PARSE_GO_ON;
}

int cli_parse_operand(const struct cli_command *command, const struct cli_option *options, int argc,
                      char **argv, const char **operand)
{
    struct cli_operands operands = {.most = 1};
    int parsed = cli_parse_operands(command, options, argc, argv, &operands);

    *operand = operands.count > 0 ? operands.words[0] : NULL;
    return parsed;
}

const char *cli_suggest(const char *word, const char *const *candidates)
{
    const char *best = NULL;
    size_t best_edits = SUGGEST_EDITS_MAX + 1;
    size_t len = strlen(word);

    if (len == 0 || len > SUGGEST_WORD_MAX)
        return NULL;
    for (; *candidates != NULL; candidates++) {
        size_t edits = hf__edit_distance(word, *candidates);

        if (len > 1 && strncmp(word, *candidates, len) == 0)
            edits = 1;
        /* Two edits turn any word of two letters into any other. */
        if (edits < best_edits && edits < len && edits < strlen(*candidates)) {
            best = *candidates;
            best_edits = edits;
        }
    }
    return best;
}

static int parse_long(struct parser *p, char *word)
{
    size_t len = strcspn(word, "=");
    char *value = word[len] == '=' ? word + len + 1 : NULL;
    bool ambiguous = false;
    const struct cli_option *option = find_long(p, word, len, &ambiguous);

    if (ambiguous) {
        (void)cli_usage_error(p->command, "option \"--%.*s\" is ambiguous", (int)len, word);
        return PARSE_ERROR;
    }
    if (option == NULL) {
        word[len] = '\0';
        return unknown_long(p, word);
    }
    if (option->kind == CLI_FLAG && value != NULL) {
        (void)cli_usage_error(p->command, "option \"--%s\" takes no value", option->name);
        return PARSE_ERROR;
    }
    return take(p, option, value);
}

/* "-nw5s": flags until a letter that takes a value, which has the rest of the word or the next. */
static int parse_letters(struct parser *p, char *word)
{
    for (; *word != '\0'; word++) {
        const struct cli_option *option = find_letter(p, *word);
        int result;

        if (option == NULL) {
            (void)cli_usage_error(p->command, "unknown option \"-%c\"", *word);
            return PARSE_ERROR;
        }
        if (option->kind != CLI_FLAG)
            return take(p, option, word[1] != '\0' ? word + 1 : NULL);
        result = take(p, option, NULL);
        if (result != PARSE_GO_ON)
            return result;
    }
    return PARSE_GO_ON;
}

static bool store_choice(const struct cli_option *option, const char *value)
{
    for (int i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], value) == 0) {
            *(int *)option->target = i;
            return true;
        }
    }
    return false;
}

/* Says what the values of an option look like. */
static void bad_value(struct parser *p, const struct cli_option *option, const char *given)
{
    struct cli_shown shown;
    const char *value = cli_shown(&shown, given);

    if (option->kind == CLI_DURATION) {
        (void)cli_usage_error(p->command,
                              "--%s: \"%s\" is not a duration such as 250ms, 30s, 5m or 1h30m",
                              option->name, value);
    } else if (option->kind == CLI_NUMBER) {
        (void)cli_usage_error(p->command, "--%s: \"%s\" is not a whole number", option->name,
                              value);
    } else if (option->kind == CLI_LIST) {
        (void)cli_usage_error(p->command, "--%s: at most %zu times", option->name,
                              ((const struct cli_list *)option->target)->most);
    } else if (option->kind == CLI_WORDS) {
        (void)cli_usage_error(p->command, "--%s: at most %d times, and %d bytes each", option->name,
                              CLI_WORDS_MAX, CLI_WORD_SIZE - 1);
    } else {
        char known[128] = "";
        size_t used = 0;
        const char *near;

        for (int i = 0; option->choices[i] != NULL && used < sizeof known; i++)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     option->choices[i]);
        near = cli_suggest(value, option->choices);
        if (near != NULL)
            (void)cli_usage_error(p->command, "--%s: unknown value \"%s\"; did you mean \"%s\"?",
                                  option->name, value, near);
        else
            (void)cli_usage_error(p->command, "--%s: unknown value \"%s\"; use one of: %s",
                                  option->name, value, known);
    }
}

static bool store_word(struct cli_words *words, char *value)
{
    char scratch[CLI_URL_SIZE];

    if (words->count == CLI_WORDS_MAX || strlen(value) >= CLI_WORD_SIZE)
        return false;
    memcpy(words->items[words->count++], value, strlen(value) + 1);
    if (strstr(value, "://") != NULL) {
        value[strcspn(value, "#")] = '\0';
        cli_take_url(scratch, value);
        explicit_bzero(scratch, sizeof scratch);
    }
    return true;
}

static bool store_item(struct cli_list *list, const char *value)
{
    if (list->count == list->most)
        return false;
    list->items[list->count++] = value;
    return true;
}

static bool store_value(const struct cli_option *option, char *value)
{
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)option->target = true;
        return true;
    case CLI_TEXT:
        *(const char **)option->target = value;
        return true;
    case CLI_URL:
        cli_take_url(option->target, value);
        return true;
    case CLI_DURATION:
        return hf__parse_duration_ms(value, option->target);
    case CLI_NUMBER:
        return hf__parse_u64(value, option->target);
    case CLI_CHOICE:
        return store_choice(option, value);
    case CLI_WORDS:
        return store_word(option->target, value);
    case CLI_LIST:
        return store_item(option->target, value);
    }
    return false;
}

/* Gives the option its value: the one it came with, or the next word. */
static int take(struct parser *p, const struct cli_option *option, char *value)
{
    if (option == &cli_help_option) {
        cli_print_help(p->command, p->options);
        return PARSE_HELP;
    }
    if (option->kind != CLI_FLAG && value == NULL) {
        if (p->next >= p->argc) {
            (void)cli_usage_error(p->command, "option \"--%s\" needs a value: %s", option->name,
                                  option->argument);
            return PARSE_ERROR;
        }
        value = p->argv[p->next++];
    }
    if (!store_value(option, value)) {
        bad_value(p, option, value);
        return PARSE_ERROR;
    }
    if (option->given != NULL)
        *option->given = true;
    return PARSE_GO_ON;
}

static int unknown_long(struct parser *p, const char *name)
{
    const char *names[OPTIONS_MAX + 2];
    size_t count = 0;
    const char *near;

    for (const struct cli_option *o = p->options; o->name != NULL && count < OPTIONS_MAX; o++)
        names[count++] = o->name;
    names[count++] = cli_help_option.name;
    names[count] = NULL;

    near = cli_suggest(name, names);
    if (strcmp(name, "store") == 0)
        (void)cli_usage_error(p->command,
                              "--store goes before the command: holdfast --store URL %s ...",
                              p->command->name);
    else if (near != NULL)
        (void)cli_usage_error(p->command, "unknown option \"--%s\"; did you mean \"--%s\"?", name,
                              near);
    else
        (void)cli_usage_error(p->command, "unknown option \"--%s\"", name);
    return PARSE_ERROR;
}

/* An exact name wins over those it begins. --help stands behind the table, for all commands. */
static const struct cli_option *find_long(struct parser *p, const char *name, size_t len,
                                          bool *ambiguous)
{
    const struct cli_option *found = NULL;

    for (const struct cli_option *o = p->options; o != NULL; o = o->name != NULL ? o + 1 : NULL) {
        const struct cli_option *option = o->name != NULL ? o : &cli_help_option;

        if (strncmp(option->name, name, len) != 0)
            continue;
        if (option->name[len] == '\0') {
            *ambiguous = false;
            return option;
        }
        if (found != NULL && strcmp(found->name, option->name) != 0)
            *ambiguous = true;
        else if (found == NULL)
            found = option;
    }
    return found;
}

static const struct cli_option *find_letter(struct parser *p, char letter)
{
    for (const struct cli_option *o = p->options; o->name != NULL; o++) {
        if (o->letter == letter)
            return o;
    }
    return letter == cli_help_option.letter ? &cli_help_option : NULL;
}
