/* hosts.h - the addresses that a URI names, and which of them is tried first. */
#ifndef HF_STORES_POSTGRES_HOSTS_H
#define HF_STORES_POSTGRES_HOSTS_H

#include "stores/postgres/row.h"
#include "stores/postgres/url.h"

enum {
    PG_HOSTS_MAX = 4 * PG_URL_MAX, /* bytes of a list */
    PG_ADDRESSES_MAX = 8           /* of one name; more are not tried */
};

/* Lists with commas, as libpq takes them, one entry per address; "": libpq's default. */
struct pg_hosts {
    unsigned count; /* of addresses; 0: the URI names none, libpq knows where to look */
    char host[PG_HOSTS_MAX];
    char hostaddr[PG_HOSTS_MAX];
    char port[PG_HOSTS_MAX];
    int64_t each_ms; /* what the URI allows for one of them (connect_timeout); 0: nothing said */
    char why[PG_WHY_SIZE]; /* if no name has an address */
};

/* Takes the hosts out of uri and looks up their names, which blocks as long as the resolver does: a
 * name that libpq looked up itself would stand for one address, the first that does not refuse.
 * Those before number `first`, modulo their count, come last. False: no name has an address. */
bool pg_hosts_init(struct pg_hosts *hosts, const char *uri, unsigned first);
/* The first becomes the last. */
void pg_hosts_turn(struct pg_hosts *hosts);

#endif /* HF_STORES_POSTGRES_HOSTS_H */
