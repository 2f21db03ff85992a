/* store_fd.c - a store's URL with its password, handed down to a holdfast below.
 *
 * HOLDFAST_STORE, which CMD sees, logs and passes on, has no password. So that a nested holdfast
 * can open the store all the same, the whole URL is in a sealed memory file that CMD inherits, and
 * HOLDFAST_STORE_FD has its number. Two lines: the URL as HOLDFAST_STORE has it, to tell that it is
 * still about the same store, and the URL. The seals tell that one of us wrote it. */
#include "cli/cli.h"

#include "base/base.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

/* Inherited on purpose: no MFD_CLOEXEC. */
int cli_store_fd_make(const char *url, const char *shown)
{
    char redacted[CLI_URL_SIZE];
    int fd;

    if (url == NULL)
        return -1;
    hf__url_redact(redacted, sizeof redacted, url);
    if (strcmp(redacted, url) == 0)
        return -1;
    fd = memfd_create("holdfast-store", MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (dprintf(fd, "%s\n%s", shown, url) > 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static int inherited_fd(const char *text)
{
    uint64_t fd;

    if (!hf__parse_u64(text, &fd) || fd > INT32_MAX ||
        (fcntl((int)fd, F_GET_SEALS) & SEALS) != SEALS || fcntl((int)fd, F_GET_SEALS) < 0)
        return -1;
    return (int)fd;
}

enum cli_store_fd cli_store_fd_read(const char *shown, char out[CLI_URL_SIZE])
{
    const char *text = secure_getenv("HOLDFAST_STORE_FD");
    char both[2 * CLI_URL_SIZE];
    int fd;
    char *line;
    ssize_t len;

    if (text == NULL || shown == NULL)
        return CLI_STORE_FD_NONE;
    fd = inherited_fd(text);
    len = fd >= 0 ? pread(fd, both, sizeof both - 1, 0) : -1;
    if (len < 0)
        return CLI_STORE_FD_CLOSED;
    both[len] = '\0';
    line = strchr(both, '\n');
    if (line == NULL || (size_t)(line - both) != strlen(shown) ||
        strncmp(both, shown, strlen(shown)) != 0)
        return CLI_STORE_FD_NONE;
    (void)snprintf(out, CLI_URL_SIZE, "%s", line + 1);
    explicit_bzero(both, sizeof both);
    return CLI_STORE_FD_READ;
}
