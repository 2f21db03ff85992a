/* output.c - what the program says: errors, exit codes, JSON. */
#include "cli/cli.h"

#include "base/base.h"

#include <string.h>

enum { MESSAGE_MAX = CLI_LINE_MAX - sizeof "holdfast: \n" + 1 }; /* bytes; the rest is cut */

static void say(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

int cli_exit_code(enum hf_status status)
{
    switch (status) {
    case HF_OK:
        return 0;
    case HF_BUSY:
    case HF_CANCELLED:
        return EXIT_HF_BUSY;
    case HF_LOST:
        return EXIT_HF_LOST;
    case HF_STALE:
        return EXIT_HF_STALE;
    case HF_UNKNOWN:
    case HF_UNREACHABLE:
    case HF_QUARANTINE:
    case HF_CORRUPT:
        return EXIT_HF_UNAVAILABLE;
    case HF_DENIED:
        return EXIT_HF_DENIED;
    case HF_INVALID:
    case HF_UNSUPPORTED:
        return EXIT_HF_USAGE;
    case HF_NOMEM:
        break;
    }
    return EXIT_HF_INTERNAL;
}

void cli_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
}

int cli_usage_error(const struct cli_command *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
    fprintf(stderr, "usage: holdfast %s%s%s\n", command->name, command->name[0] != '\0' ? " " : "",
            command->arguments);
    return EXIT_HF_USAGE;
}

int cli_fail(const struct hf_error *err)
{
    cli_error("%s", cli_text_of(err));
    return cli_exit_code(err->code);
}

const char *cli_text_of(const struct hf_error *err)
{
    return err->text[0] != '\0' ? err->text : hf_status_text(err->code);
}

void cli_format_line(char *out, size_t size, const char *format, va_list args)
{
    char raw[MESSAGE_MAX];
    char line[MESSAGE_MAX];

    (void)vsnprintf(raw, sizeof raw, format, args);
    hf__copy_printable(line, sizeof line, raw);
    (void)snprintf(out, size, "holdfast: %s\n", line);
}

const char *cli_shown(struct cli_shown *out, const char *word)
{
    hf__url_redact(out->text, sizeof out->text, word);
    return out->text;
}

int cli_one_too_many(const struct cli_command *command, const char *word)
{
    struct cli_shown shown;

    return cli_usage_error(command, "unexpected word \"%s\"", cli_shown(&shown, word));
}

void cli_json_string(FILE *out, const char *text)
{
    char one[CLI_JSON_CHAR_SIZE];

    fputc('"', out);
    while (*text != '\0') {
        size_t len = cli_json_char(one, &text);

        fwrite(one, 1, len, out);
    }
    fputc('"', out);
}

size_t cli_json_char(char out[CLI_JSON_CHAR_SIZE], const char **text)
{
    const char *from = *text;
    unsigned long point;
    size_t len = hf__utf8_read(from, &point);
    *text += len ? len : 1;
    if (*from == '"' || *from == '\\')
        return (size_t)snprintf(out, CLI_JSON_CHAR_SIZE, "\\%c", *from);
    if (len == 0)
        return (size_t)snprintf(out, CLI_JSON_CHAR_SIZE, "\xef\xbf\xbd");
    if (!hf__is_printable(point))
        return (size_t)snprintf(out, CLI_JSON_CHAR_SIZE, "\\u%04lx", point);
    return (size_t)snprintf(out, CLI_JSON_CHAR_SIZE, "%.*s", (int)len, from);
}

/* One message, one line, one write. */
static void say(const char *format, va_list args)
{
    char line[CLI_LINE_MAX];

    cli_format_line(line, sizeof line, format, args);
    fputs(line, stderr);
}
