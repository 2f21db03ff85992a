/* password.c - where a password comes from when it is not in the URL. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file, relative to the folder in which systemd puts the credentials of a unit, if it is there:
 * files of environment variables have no other way to name it. -1 with errno. */
static int open_file(const char *file)
{
    const char *folder = file[0] != '/' ? secure_getenv("CREDENTIALS_DIRECTORY") : NULL;
    char path[PATH_MAX];
    int fd = -1;

    if (folder != NULL && folder[0] == '/' &&
        snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path)
        fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 ? fd : open(file, O_RDONLY | O_CLOEXEC);
}

/* The first line of the file. */
static enum hf_status read_line(const char *file, const char *shown, char *out, size_t size,
                                struct hf_error *err)
{
    int fd = open_file(file);
    ssize_t len = -1;
    int why;

    if (fd >= 0)
        len = read(fd, out, size);
    why = errno;
    if (fd >= 0)
        (void)close(fd);
    if (len < 0)
        return hf__fail(err, why == EACCES || why == EPERM ? HF_DENIED : HF_INVALID,
                        "store %.100s: cannot read the password from %.60s: %s", shown, file,
                        strerror(why));
    if ((size_t)len == size)
        return hf__fail(err, HF_INVALID, "store %.100s: the password in %.60s is too long", shown,
                        file);
    out[len] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    if (out[0] == '\0')
        return hf__fail(err, HF_INVALID,
                        "store %.100s: %.60s is empty; its first line is the password", shown,
                        file);
    return hf__ok(err);
}

enum hf_status hf__find_password(const char *file, const char *variable, const char *shown,
                                 char *out, size_t size, struct hf_error *err)
{
    const char *value;

    out[0] = '\0';
    if (file[0] != '\0')
        return read_line(file, shown, out, size, err);
    value = secure_getenv(variable);
    if (value == NULL)
        return hf__ok(err);
    if (strlen(value) >= size)
        return hf__fail(err, HF_INVALID, "store %.100s: the password in %.60s is too long", shown,
                        variable);
    memcpy(out, value, strlen(value) + 1);
    return hf__ok(err);
}
