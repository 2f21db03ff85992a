/* plugin.c - where plugins are looked for: those of stores, of databases and of senders. */
#include "client/plugin.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef HF_PLUGIN_DIR
#define HF_PLUGIN_DIR "/usr/local/lib/holdfast"
#endif

/* The folder of the object this function is in: where libholdfast, or the program it is linked
 * into, stands. The kernel knows the file that is mapped here; dladdr(3) would repeat a program's
 * argv[0] or the name a library was loaded by, which whoever starts us, or the working directory,
 * can make lead anywhere. */
static bool own_folder(char *out, size_t size)
{
    char line[PATH_MAX + 128];
    uintptr_t here = (uintptr_t)own_folder;
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");

    /* "from-to perms offset device inode   /path" */
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        char *end;
        uintptr_t from = (uintptr_t)strtoumax(line, &end, 16);
        uintptr_t to = *end == '-' ? (uintptr_t)strtoumax(end + 1, NULL, 16) : 0;
        const char *path = strchr(line, '/');
        const char *slash = strrchr(line, '/');

        if (here < from || here >= to)
            continue;
        if (path == NULL || (size_t)(slash - path) >= size)
            break;
        memcpy(out, path, (size_t)(slash - path));
        out[slash - path] = '\0';
        found = true;
    }
    if (maps != NULL)
        (void)fclose(maps);
    return found;
}

/* Loads FOLDER/PLUGIN.so. NULL if there is none; *broken says why one that is there is no use. A
 * relative folder has none: code must not depend on the directory that somebody works in. */
static void *load_from(const char *folder, size_t folder_len, const char *plugin, char *broken,
                       size_t broken_size)
{
    char path[PATH_MAX];
    void *object;

    if (folder_len == 0 || folder[0] != '/' ||
        snprintf(path, sizeof path, "%.*s/%s.so", (int)folder_len, folder, plugin) >=
            (int)sizeof path ||
        access(path, F_OK) != 0)
        return NULL;
    /* Lazily: a client library may bring thirty others, of which hardly a function is called. */
    object = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (object == NULL)
        (void)snprintf(broken, broken_size, "%s", dlerror());
    return object;
}

static void *load(const char *plugin, char *broken, size_t broken_size)
{
    static const char *const beside[] = {"stores", "holdfast", "../lib/holdfast"};
    const char *path = secure_getenv("HOLDFAST_STORE_PATH");
    char folder[PATH_MAX];
    char sub[PATH_MAX + 32];
    void *object = NULL;

    while (path != NULL && *path != '\0' && object == NULL) {
        size_t len = strcspn(path, ":");

        object = load_from(path, len, plugin, broken, broken_size);
        path += len + (path[len] == ':');
    }
    if (object == NULL && own_folder(folder, sizeof folder))
        for (size_t i = 0; i < sizeof beside / sizeof *beside && object == NULL; i++) {
            (void)snprintf(sub, sizeof sub, "%s/%s", folder, beside[i]);
            object = load_from(sub, strlen(sub), plugin, broken, broken_size);
        }
    if (object == NULL)
        object = load_from(HF_PLUGIN_DIR, strlen(HF_PLUGIN_DIR), plugin, broken, broken_size);
    return object;
}

/* A loaded plugin stays: unloading code that may have threads or exit handlers is not safe. */
void *hf__plugin_symbol(const char *plugin, const char *symbol, char *broken, size_t broken_size)
{
    void *object = load(plugin, broken, broken_size);
    void *found = object != NULL ? dlsym(object, symbol) : NULL;

    if (object != NULL && found == NULL)
        (void)snprintf(broken, broken_size, "it exports no %s", symbol);
    return found;
}
