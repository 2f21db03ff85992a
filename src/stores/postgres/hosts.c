/* hosts.c - the hosts that a URI names. */
#include "stores/postgres/hosts.h"

#include <postgresql/libpq-fe.h>
#include <stdio.h>
#include <string.h>

static unsigned count_of(const char *list)
{
    unsigned count = list[0] != '\0' ? 1 : 0;

    for (; *list != '\0'; list++)
        count += *list == ',';
    return count;
}

/* The first becomes the last. */
static void turn(char list[PG_URL_MAX])
{
    size_t first = strcspn(list, ",");
    char copy[PG_URL_MAX];

    if (list[first] == '\0')
        return; /* one port for all hosts */
    memcpy(copy, list, strlen(list) + 1);
    (void)snprintf(list, PG_URL_MAX, "%s,%.*s", copy + first + 1, (int)first, copy);
}

void pg_hosts_init(struct pg_hosts *hosts, const char *uri, unsigned first)
{
    PQconninfoOption *options = PQconninfoParse(uri, NULL);

    memset(hosts, 0, sizeof *hosts);
    for (const PQconninfoOption *at = options; at != NULL && at->keyword != NULL; at++) {
        char *list = strcmp(at->keyword, "host") == 0       ? hosts->host
                     : strcmp(at->keyword, "hostaddr") == 0 ? hosts->hostaddr
                     : strcmp(at->keyword, "port") == 0     ? hosts->port
                                                            : NULL;

        if (list != NULL && at->val != NULL && strlen(at->val) < PG_URL_MAX)
            memcpy(list, at->val, strlen(at->val) + 1);
    }
    PQconninfoFree(options);
    hosts->count = count_of(hosts->host[0] != '\0' ? hosts->host : hosts->hostaddr);
    if (hosts->count < 2)
        hosts->count = 0;
    for (unsigned i = 0; hosts->count != 0 && i < first % hosts->count; i++) {
        turn(hosts->host);
        turn(hosts->hostaddr);
        turn(hosts->port);
    }
}
