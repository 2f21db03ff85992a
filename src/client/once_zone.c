/* once_zone.c - a time zone from the system's database. */
#include "base/base.h"
#include "client/once.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 256 };

/* Where systems keep it; $TZDIR comes first. */
static const char *const places[] = {"/usr/share/zoneinfo", "/usr/lib/zoneinfo",
                                     "/usr/share/lib/zoneinfo", "/etc/zoneinfo"};
enum { PLACES = sizeof places / sizeof places[0] };

/* "Europe/Berlin", and nothing that leads out of the database. */
static bool is_name(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/");

    return len > 0 && len <= HF__ONCE_ZONE_MAX && name[len] == '\0' && name[0] != '/';
}

/* The length of the file; -1 with errno. A folder is no file. */
static ssize_t read_file(const char *path, unsigned char *data)
{
    size_t used = 0;
    ssize_t got = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int error;

    if (fd < 0)
        return -1;
    while (used < HF__ZONE_FILE_MAX && (got = read(fd, data + used, HF__ZONE_FILE_MAX - used)) > 0)
        used += (size_t)got;
    error = errno;
    (void)close(fd);
    errno = error;
    return got < 0 ? -1 : (ssize_t)used;
}

static enum hf_status no_such_zone(const char *option, const char *name, bool database,
                                   struct hf_error *err)
{
    if (database)
        return hf__fail(err, HF_INVALID, "%s: there is no time zone \"%s\" in %s", option, name,
                        places[0]);
    return hf__fail(err, HF_INVALID,
                    "%s: this machine has no time zones, %s is missing: install tzdata, or use %s "
                    "UTC",
                    option, places[0], option);
}

/* HF_OK, or HF_INVALID without a text: there is no such file. */
static enum hf_status read_zone(const char *option, const char *path, struct hf__zone *zone,
                                unsigned char *data, struct hf_error *err)
{
    ssize_t len = read_file(path, data);

    err->text[0] = '\0';
    if (len >= 0 && hf__zone_read(zone, data, (size_t)len))
        return hf__ok(err);
    if (len >= 0)
        return hf__fail(err, HF_INVALID, "%s: %s is not a usable time zone", option, path);
    return HF_INVALID;
}

enum hf_status hf__once_zone(const char *option, const char *name, struct hf__zone *zone,
                             unsigned char **data, struct hf_error *err)
{
    const char *own = secure_getenv("TZDIR");
    bool database = false;

    hf__zone_utc(zone);
    if (strcmp(name, "UTC") == 0)
        return hf__ok(err);
    if (!is_name(name))
        return hf__fail(err, HF_INVALID, "%s: \"%s\" is not a time zone such as Europe/Berlin",
                        option, name);
    free(*data);
    *data = malloc(HF__ZONE_FILE_MAX);
    if (*data == NULL)
        return hf__nomem(err);
    for (int i = -1; i < PLACES; i++) {
        const char *place = i < 0 ? own : places[i];
        char path[PATH_SIZE];
        enum hf_status status;

        if (place == NULL || snprintf(path, sizeof path, "%s/%s", place, name) >= PATH_SIZE)
            continue;
        status = read_zone(option, path, zone, *data, err);
        if (status == HF_OK || err->text[0] != '\0')
            return status;
        database = database || access(place, F_OK) == 0;
    }
    return no_such_zone(option, name, database, err);
}
