/* main.c - the global options, and the way to the command. */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cli_command program = {
    .name = "", .arguments = "[--store URL] COMMAND [ARG...]", .summary = ""};

static void fill_standard_descriptors(void);
static int finish_output(int exit_code);

int main(int argc, char **argv)
{
    const char *from_environment = secure_getenv("HOLDFAST_STORE");
    struct cli_context context = {.store_url = from_environment};
    char url[CLI_URL_SIZE];
    bool has_url = false;
    bool help = false;
    bool version = false;
    const struct cli_option options[] = {
        {.name = "store", .kind = CLI_URL, .argument = "URL", .target = url, .given = &has_url},
        {.letter = 'h', .name = "help", .kind = CLI_FLAG, .target = &help},
        {.letter = 'V', .name = "version", .kind = CLI_FLAG, .target = &version},
        {.name = NULL}};
    int first;
    enum cli_store_fd above = CLI_STORE_FD_NONE;
    const struct cli_command *command;
    int exit_code;

    fill_standard_descriptors();
    first = cli_parse(&program, options, argc, argv, NULL);
    if (first < 0)
        return EXIT_HF_USAGE;
    if (help || version) {
        char *words[2] = {NULL};

        command = cli_find(help ? "help" : "version");
        words[0] = (char *)command->name;
        return finish_output(command->main(&context, 1, words));
    }
    if (first == argc) {
        cli_print_overview(stderr);
        return EXIT_HF_USAGE;
    }
    if (!has_url)
        above = cli_store_fd_read(from_environment, url);
    if (has_url || above == CLI_STORE_FD_READ)
        context.store_url = url;
    if (context.store_url != NULL && context.store_url[0] == '\0')
        context.store_url = NULL;

    command = cli_find(argv[first]);
    if (command == NULL)
        return cli_unknown_command(&program, NULL, argv[first]);
    exit_code = finish_output(command->main(&context, argc - first, argv + first));
    if (exit_code == EXIT_HF_DENIED && above == CLI_STORE_FD_CLOSED)
        cli_error("the password was handed down on descriptor $HOLDFAST_STORE_FD, which is closed "
                  "here: set HOLDFAST_STORE again, or put ?password_file=FILE in it");
    return exit_code;
}

/* If we were started with descriptor 0, 1 or 2 closed, the next file opened would get its number,
 * and a message to stderr would be written into the store. So the gaps are filled, with something
 * that fails when used as before, and that a command we execute does not inherit. */
static void fill_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        int mode;

        if (fcntl(fd, F_GETFD) != -1)
            continue;
        mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (open("/dev/null", mode | O_CLOEXEC) != fd)
            _exit(EXIT_HF_INTERNAL);
    }
}

/* Output that did not arrive is a failure, even if the disk was full only at the last byte. */
static int finish_output(int exit_code)
{
    bool bad = ferror(stdout) != 0;

    if (fflush(stdout) != 0)
        bad = true;
    if (!bad || exit_code != EXIT_SUCCESS)
        return exit_code;
    cli_error("the output could not be written");
    return EXIT_HF_INTERNAL;
}
