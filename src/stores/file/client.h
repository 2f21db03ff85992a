/* client.h - a client's page of details: had at its first acquire, given up when it closes. */
#ifndef HF_STORES_FILE_CLIENT_H
#define HF_STORES_FILE_CLIENT_H

#include "stores/file/file.h"

/* Makes sure, as far as that is possible now, that we have details to take. Without any, those in
 * the slots serve. No page may be locked. */
void hf__client_prepare(struct file_store *store, int64_t deadline_ns);
/* Gives the page up, if no word names something in it. Otherwise whoever finds us dead buries it,
 * like that of a client that was killed. */
void hf__client_close(struct file_store *store);

/* Buries all who are dead. No page may be locked. */
void hf__client_sweep(struct file_store *store);

#endif /* HF_STORES_FILE_CLIENT_H */
