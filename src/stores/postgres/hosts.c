/* hosts.c - the addresses that a URI names. */
#include "stores/postgres/hosts.h"

#include <netdb.h>
#include <postgresql/libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* What the URI says, as lists. */
struct wanted {
    char host[PG_URL_MAX];
    char hostaddr[PG_URL_MAX];
    char port[PG_URL_MAX];
};

static void turn(char list[PG_HOSTS_MAX])
{
    size_t first = strcspn(list, ",");
    char copy[PG_HOSTS_MAX];

    if (list[first] == '\0')
        return; /* one port for all hosts */
    memcpy(copy, list, strlen(list) + 1);
    (void)snprintf(list, PG_HOSTS_MAX, "%s,%.*s", copy + first + 1, (int)first, copy);
}

void pg_hosts_turn(struct pg_hosts *hosts)
{
    turn(hosts->host);
    turn(hosts->hostaddr);
    turn(hosts->port);
}

static void read_uri(const char *uri, struct wanted *wanted, int64_t *each_ms)
{
    PQconninfoOption *options = PQconninfoParse(uri, NULL);

    for (const PQconninfoOption *at = options; at != NULL && at->keyword != NULL; at++) {
        char *list = strcmp(at->keyword, "host") == 0       ? wanted->host
                     : strcmp(at->keyword, "hostaddr") == 0 ? wanted->hostaddr
                     : strcmp(at->keyword, "port") == 0     ? wanted->port
                                                            : NULL;

        if (at->val == NULL)
            continue;
        if (list != NULL && strlen(at->val) < PG_URL_MAX)
            memcpy(list, at->val, strlen(at->val) + 1);
        if (strcmp(at->keyword, "connect_timeout") == 0)
            *each_ms = strtol(at->val, NULL, 10) * 1000;
    }
    PQconninfoFree(options);
}

/* The next entry of a list; an empty one at its end. */
static size_t next_entry(const char **at, const char **entry)
{
    size_t len = strcspn(*at, ",");

    *entry = *at;
    *at += len + ((*at)[len] == ',' ? 1 : 0);
    return len;
}

static unsigned count_of(const char *list)
{
    unsigned count = 1;

    for (; *list != '\0'; list++)
        count += *list == ',';
    return count;
}

static bool has_room(const char list[PG_HOSTS_MAX], size_t len)
{
    return strlen(list) + 1 + len < PG_HOSTS_MAX;
}

static void append(char list[PG_HOSTS_MAX], bool first, const char *text, size_t len)
{
    size_t used = strlen(list);

    (void)snprintf(list + used, PG_HOSTS_MAX - used, "%s%.*s", first ? "" : ",", (int)len, text);
}

struct entry {
    const char *host;
    size_t host_len;
    const char *port;
    size_t port_len;
};

static void add(struct pg_hosts *hosts, const struct entry *entry, const char *address, size_t len,
                bool with_port)
{
    bool first = hosts->count == 0;

    if (!has_room(hosts->host, entry->host_len) || !has_room(hosts->hostaddr, len) ||
        !has_room(hosts->port, entry->port_len))
        return;
    append(hosts->host, first, entry->host, entry->host_len);
    append(hosts->hostaddr, first, address, len);
    if (with_port)
        append(hosts->port, first, entry->port, entry->port_len);
    hosts->count++;
}

/* One entry for each address of the host; for a folder of sockets, the folder. */
static void add_addresses(struct pg_hosts *hosts, const struct entry *entry, bool with_port)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char name[PG_URL_MAX];
    int failed;
    int tried = 0;

    if (entry->host_len == 0 || entry->host[0] == '/' || entry->host[0] == '@') {
        add(hosts, entry, "", 0, with_port);
        return;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)entry->host_len, entry->host);
    failed = getaddrinfo(name, NULL, &hints, &found);
    if (failed != 0) {
        (void)snprintf(hosts->why, sizeof hosts->why, "the host name %.60s has no address: %.60s",
                       name, gai_strerror(failed));
        return;
    }
    for (const struct addrinfo *at = found; at != NULL && tried < PG_ADDRESSES_MAX;
         at = at->ai_next, tried++) {
        char address[NI_MAXHOST];

        if (getnameinfo(at->ai_addr, at->ai_addrlen, address, sizeof address, NULL, 0,
                        NI_NUMERICHOST) == 0)
            add(hosts, entry, address, strlen(address), with_port);
    }
    freeaddrinfo(found);
}

static void look_up(struct pg_hosts *hosts, const struct wanted *wanted)
{
    const char *host_at = wanted->host;
    const char *port_at = wanted->port;
    bool with_port = count_of(wanted->port) > 1;

    if (!with_port)
        memcpy(hosts->port, wanted->port, sizeof wanted->port);
    for (unsigned left = count_of(wanted->host); left > 0; left--) {
        struct entry entry;

        entry.host_len = next_entry(&host_at, &entry.host);
        entry.port_len = next_entry(&port_at, &entry.port);
        add_addresses(hosts, &entry, with_port);
    }
}

bool pg_hosts_init(struct pg_hosts *hosts, const char *uri, unsigned first)
{
    struct wanted wanted = {.host = ""};

    memset(hosts, 0, sizeof *hosts);
    read_uri(uri, &wanted, &hosts->each_ms);
    if (wanted.hostaddr[0] != '\0') {
        memcpy(hosts->host, wanted.host, sizeof wanted.host);
        memcpy(hosts->hostaddr, wanted.hostaddr, sizeof wanted.hostaddr);
        memcpy(hosts->port, wanted.port, sizeof wanted.port);
        hosts->count = count_of(hosts->hostaddr);
    } else if (wanted.host[0] != '\0') {
        look_up(hosts, &wanted);
        if (hosts->count == 0)
            return false;
    }
    for (unsigned i = 0; hosts->count != 0 && i < first % hosts->count; i++)
        pg_hosts_turn(hosts);
    return true;
}
