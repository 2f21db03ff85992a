/* life.h - FIFOs as signs of life. */
#ifndef HF_STORES_FILE_LIFE_H
#define HF_STORES_FILE_LIFE_H

#include "stores/file/file.h"

/* The client's own FIFO, made at the first call; -1 if it cannot be had. */
int hf__life_fd(struct file_store *store);
/* False only if the client is surely gone. Unlinks the FIFO of a dead client. */
bool hf__life_check(struct file_store *store, uint64_t client);
/* A descriptor that becomes readable (HUP) when the client dies; -1 if it is dead already, -2 if
 * that cannot be told. */
int hf__life_watch(struct file_store *store, uint64_t client);
/* The same for a FIFO by its name, as the sweep finds it. */
int hf__life_open(struct file_store *store, const char *name);
/* Closes the own FIFO; unlinks it unless forked. */
void hf__life_close(struct file_store *store, bool forked);

#endif /* HF_STORES_FILE_LIFE_H */
