/* url.c - from a URL to the directory of an embedded store. */
#include "stores/file/url.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool set_shared(void *into, const char *value)
{
    bool *shared = into;

    *shared = strcmp(value, "group") == 0;
    return *shared;
}

static const struct hf__url_option options[] = {HF__OPTION_OWN("shared", set_shared),
                                                {.name = NULL}};

/* The absolute path that a variable holds, up to a character of `ends`, and what is below it. NULL
 * if it holds none, or without memory, which *nomem tells. */
static char *below(const char *variable, const char *ends, const char *name, bool *nomem)
{
    const char *value = secure_getenv(variable);
    char *path = NULL;
    size_t len;

    if (value == NULL || value[0] != '/')
        return NULL;
    len = strcspn(value, ends);
    while (len > 0 && value[len - 1] == '/')
        len--;
    if (asprintf(&path, "%.*s/%s", (int)len, value, name) >= 0)
        return path;
    *nomem = true;
    return NULL;
}

/* "" if there is no place. */
static char *default_dir(void)
{
    const char *dir = secure_getenv("HOLDFAST_DIR");
    bool nomem = false;
    char *path;

    if (dir != NULL && dir[0] != '\0')
        return strdup(dir);
    path = below("STATE_DIRECTORY", ":", "holdfast", &nomem); /* of a service: systemd.exec(5) */
    if (path == NULL && !nomem && geteuid() == 0)
        return strdup("/var/lib/holdfast");
    if (path == NULL && !nomem)
        path = below("XDG_STATE_HOME", "", "holdfast", &nomem);
    if (path == NULL && !nomem)
        path = below("HOME", "", ".local/state/holdfast", &nomem);
    return path != NULL || nomem ? path : strdup("");
}

enum hf_status hf__url_dir(const char *url, char **path_out, bool *shared_out, struct hf_error *err)
{
    const char *rest = hf__url_rest(url, "file");
    char why[120];
    size_t len;
    char *path;

    if (rest == NULL)
        return hf__fail(err, HF_INVALID, "not a file: URL");
    len = strcspn(rest, "?");
    *shared_out = false;
    if (rest[len] == '?' && !hf__url_options(rest + len + 1, options, shared_out, why, sizeof why))
        return hf__fail(err, HF_INVALID, "%s: write file:DIR or file:DIR?shared=group", why);
    if (strncmp(rest, "//", 2) == 0 && rest[2] == '/') {
        rest += 2; /* file:///dir is file:/dir */
        len -= 2;
    } else if (strncmp(rest, "//", 2) == 0) {
        return hf__fail(err, HF_INVALID, "file: takes a directory, not a host: write file:/DIR");
    }
    path = len > 0 ? strndup(rest, len) : default_dir();
    if (path == NULL)
        return hf__nomem(err);
    if (len > 0 && !hf__url_decode(path)) {
        free(path);
        return hf__fail(err, HF_INVALID,
                        "file: a %% in the path does not start an escape: write %%25 for it");
    }
    if (path[0] == '\0') {
        free(path);
        return hf__fail(err, HF_INVALID,
                        "no place for the embedded store: set HOLDFAST_DIR, HOME or --store");
    }
    *path_out = path;
    return HF_OK;
}
