/* wire.h - what conn.c and execute.c share. */
#ifndef HF_STORES_POSTGRES_WIRE_H
#define HF_STORES_POSTGRES_WIRE_H

#include "stores/postgres/conn.h"

enum pg_wait { PG_WAIT_READY, PG_WAIT_TIMEOUT, PG_WAIT_CANCELLED };

/* Waits for events on fd (-1: none). What fd has ready comes before a cancellation. */
enum pg_wait pg_wait(int fd, short events, const struct pg_patience *patience);

#endif /* HF_STORES_POSTGRES_WIRE_H */
