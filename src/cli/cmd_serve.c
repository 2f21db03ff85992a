/* cmd_serve.c - holdfast serve: executes holdfast-serve, which is installed among the plugins
 * because it needs libraries that holdfast does without. */
#include "cli/cli.h"

#include "base/base.h"
#include "client/plugin.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int serve_main(const struct cli_context *context, int argc, char **argv);

const struct cli_command command_serve = {
    "serve", "[options]", "serve a store over HTTP, with a page and metrics", serve_main};

/* The store in the environment, its password on a descriptor. False: no memory. */
static bool hand_down(const char *url)
{
    char shown[CLI_URL_SIZE];
    char number[16];
    int fd;

    if (url == NULL)
        return true;
    hf__url_redact(shown, sizeof shown, url);
    fd = cli_store_fd_make(url, shown);
    (void)snprintf(number, sizeof number, "%d", fd);
    if (fd >= 0 && setenv("HOLDFAST_STORE_FD", number, 1) != 0)
        return false;
    return (fd >= 0 || strcmp(shown, url) == 0) && setenv("HOLDFAST_STORE", shown, 1) == 0;
}

static int serve_main(const struct cli_context *context, int argc, char **argv)
{
    char path[PATH_MAX];
    char remedy[HF__REMEDY_SIZE];

    (void)argc; /* argv ends with a NULL */
    if (!hf__plugin_program("holdfast-serve", path, sizeof path)) {
        hf__plugin_remedy("serve", remedy, sizeof remedy);
        cli_error("the program holdfast-serve is not installed: %s", remedy);
        return EXIT_HF_NOT_FOUND;
    }
    if (!hand_down(context->store_url)) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    (void)execv(path, argv);
    cli_error("cannot execute %s: %s", path, strerror(errno));
    return EXIT_HF_CANNOT_EXEC;
}
