/* slow_lookup.c - preloaded, looks up names that end in .slow for a minute, in vain. */
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");
    size_t len = name != NULL ? strlen(name) : 0;

    if (len > 5 && strcmp(name + len - 5, ".slow") == 0) {
        (void)sleep(60);
        return EAI_AGAIN;
    }
    memcpy(&next, &found, sizeof next);
    return next(name, service, hints, out);
}
