/* hosts.h - the hosts that a URI names, and which of them is tried first. Pure. */
#ifndef HF_STORES_POSTGRES_HOSTS_H
#define HF_STORES_POSTGRES_HOSTS_H

#include "stores/postgres/url.h"

/* Lists with commas, as libpq takes them; "": not in the URI. */
struct pg_hosts {
    unsigned count; /* 0: one, or none that the URI names: nothing to choose from */
    char host[PG_URL_MAX];
    char hostaddr[PG_URL_MAX];
    char port[PG_URL_MAX];
};

/* Takes the hosts out of uri; those before number `first`, modulo their count, come last. */
void pg_hosts_init(struct pg_hosts *hosts, const char *uri, unsigned first);

#endif /* HF_STORES_POSTGRES_HOSTS_H */
