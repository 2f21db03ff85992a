/* array.h - a parameter that is an array, in PostgreSQL's binary form: dimensions, flags, the
 * elements' type, their number, the first index, then length and bytes of each; all numbers
 * big-endian. */
#ifndef HF_STORES_POSTGRES_ARRAY_H
#define HF_STORES_POSTGRES_ARRAY_H

#include "stores/postgres/conn.h"

enum { PG_OID_BYTEA = 17, PG_OID_INT8 = 20, PG_OID_INT4 = 23 };

struct pg_array {
    unsigned char *bytes; /* NULL: nothing yet */
    size_t len;
};

/* Room for count elements of at most element_max bytes. False: no memory. */
bool pg_array_init(struct pg_array *array, uint32_t type, size_t count, size_t element_max);
void pg_array_release(struct pg_array *array);
void pg_array_bytes(struct pg_array *array, const void *bytes, size_t len);
void pg_array_number(struct pg_array *array, uint64_t number, size_t size);
/* An owner's 16 bytes; false: it is not a valid one. */
bool pg_array_owner(struct pg_array *array, const char *owner);

/* The bytes stay the array's. */
static inline void pg_params_array(struct pg_params *params, const struct pg_array *array)
{
    pg_params_bytes(params, array->bytes, array->len);
}

#endif /* HF_STORES_POSTGRES_ARRAY_H */
