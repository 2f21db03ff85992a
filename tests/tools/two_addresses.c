/* two_addresses.c - preloaded, names that end in .two have the address 127.0.0.2, and then
 * 127.0.0.1. */
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");
    size_t len = name != NULL ? strlen(name) : 0;
    struct addrinfo *last;
    int failed;

    memcpy(&next, &found, sizeof next);
    if (len < 4 || strcmp(name + len - 4, ".two") != 0)
        return next(name, service, hints, out);
    failed = next("127.0.0.2", service, hints, out);
    if (failed != 0)
        return failed;
    for (last = *out; last->ai_next != NULL; last = last->ai_next)
        ;
    return next("127.0.0.1", service, hints, &last->ai_next);
}
