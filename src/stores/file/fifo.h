/* fifo.h - FIFOs: made, kept while their owner holds the lock, used again. */
#ifndef HF_STORES_FILE_FIFO_H
#define HF_STORES_FILE_FIFO_H

#include "stores/file/file.h"

#define FIFO_NAME_SIZE 64 /* "queue/" + hash + ticket */

/* A waiter's FIFO. It is kept while its owner holds the lock: the next in the queue watches it. */
struct fifo {
    struct fifo *next;
    unsigned char owner[HF_OWNER_LEN / 2];
    char name[FIFO_NAME_SIZE];
    int fd;
};

/* Makes a FIFO, in place of one that the dead may have left, and opens it for reading and writing.
 * -1 with errno. */
int hf__fifo_make(struct file_store *store, const char *name);
/* A FIFO to wait with: one used before, or one that is still to be made. NULL: out of memory. */
struct fifo *hf__fifo_new(struct file_store *store);
/* Puts it in place under a ticket's name. False with errno. */
bool hf__fifo_place(struct file_store *store, struct fifo *fifo, const char *name);
/* Writes the wake byte into a waiter's FIFO. Raises no signal in the caller's program if the waiter
 * has died since its FIFO was opened. */
void hf__fifo_wake(int fd);
/* Closes and frees it: those who watch it wake up. */
void hf__fifo_drop(struct file_store *store, struct fifo *fifo);
/* Keeps it while `owner` holds the lock; released, it can be used again. */
void hf__fifo_keep(struct file_store *store, struct fifo *fifo, const char *owner);
void hf__fifo_release(struct file_store *store, const unsigned char *owner);
void hf__fifo_close_all(struct file_store *store, bool forked);

#endif /* HF_STORES_FILE_FIFO_H */
