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

/* What is looked for in a folder. */
struct search {
    const char *name;
    void *object; /* a plugin that was loaded */
    char *out;    /* of a plugin: why one that is there is no use; of a program: its path */
    size_t out_size;
};
/* True: it is there. A relative folder has none: code must not depend on the directory that
 * somebody works in. */
typedef bool visit_fn(struct search *search, const char *folder, size_t folder_len);

static bool path_in(char path[PATH_MAX], const char *folder, size_t folder_len, const char *name,
                    const char *suffix)
{
    return folder_len > 0 && folder[0] == '/' &&
           snprintf(path, PATH_MAX, "%.*s/%s%s", (int)folder_len, folder, name, suffix) < PATH_MAX;
}

static bool visit_plugin(struct search *search, const char *folder, size_t folder_len)
{
    char path[PATH_MAX];

    if (!path_in(path, folder, folder_len, search->name, ".so") || access(path, F_OK) != 0)
        return false;
    /* Lazily: a client library may bring thirty others, of which hardly a function is called. */
    search->object = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (search->object == NULL)
        (void)snprintf(search->out, search->out_size, "%s", dlerror());
    return search->object != NULL;
}

static bool visit_program(struct search *search, const char *folder, size_t folder_len)
{
    char path[PATH_MAX];

    if (!path_in(path, folder, folder_len, search->name, "") || access(path, X_OK) != 0)
        return false;
    return snprintf(search->out, search->out_size, "%s", path) < (int)search->out_size;
}

/* Goes through the folders, until it is there. */
static bool find(struct search *search, visit_fn *visit)
{
    /* From the program, from the library, and from a program that lies among the plugins. */
    static const char *const beside[] = {"stores", "holdfast", "../lib/holdfast", "../holdfast",
                                         "../stores"};
    const char *path = secure_getenv("HOLDFAST_STORE_PATH");
    char folder[PATH_MAX];
    char sub[PATH_MAX + 32];
    bool found = false;

    while (path != NULL && *path != '\0' && !found) {
        size_t len = strcspn(path, ":");

        found = visit(search, path, len);
        path += len + (path[len] == ':');
    }
    if (!found && own_folder(folder, sizeof folder))
        for (size_t i = 0; i < sizeof beside / sizeof *beside && !found; i++) {
            (void)snprintf(sub, sizeof sub, "%s/%s", folder, beside[i]);
            found = visit(search, sub, strlen(sub));
        }
    return found || visit(search, HF_PLUGIN_DIR, strlen(HF_PLUGIN_DIR));
}

bool hf__plugin_program(const char *name, char *out, size_t size)
{
    struct search search = {.name = name, .out = out, .out_size = size};

    return find(&search, visit_program);
}

/* A loaded plugin stays: unloading code that may have threads or exit handlers is not safe. */
void *hf__plugin_symbol(const char *plugin, const char *symbol, char *broken, size_t broken_size)
{
    struct search search = {.name = plugin, .out = broken, .out_size = broken_size};
    void *found = find(&search, visit_plugin) ? dlsym(search.object, symbol) : NULL;

    if (search.object != NULL && found == NULL)
        (void)snprintf(broken, broken_size, "it exports no %s", symbol);
    return found;
}
