/* ticket.h - the tickets of a queue: whose waiter lives, and who is next. */
#ifndef HF_STORES_FILE_TICKET_H
#define HF_STORES_FILE_TICKET_H

#include "stores/file/file.h"
#include "stores/file/view.h"

#define WAITERS_COUNTED 64 /* of a queue, one by one; see hf__ticket_count */

void hf__ticket_name(char *out, uint64_t hash, uint64_t ticket); /* FIFO_NAME_SIZE bytes */
/* Opens a ticket's FIFO for writing. -1: dead; -2: cannot tell. Unlinks that of a dead one if the
 * page is locked: otherwise it may be one that its waiter is about to open. */
int hf__ticket_open(struct file_store *store, uint64_t hash, uint64_t ticket, bool locked);
/* Where the queue ends without the dead at its end. Their tickets can be drawn again: nobody stands
 * behind them, and so nobody watches them. Otherwise those who come and lose patience while one
 * holds on would leave ever more to step over. The page is locked. */
uint64_t hf__ticket_trim(struct file_store *store, const struct view *view);
/* The first ticket from view->head on whose waiter lives, or view->tail; removes dead FIFOs it
 * passes. The page is locked. *fd_out (may be NULL): the FIFO, open for writing, -1 if there is
 * none. */
uint64_t hf__ticket_first_live(struct file_store *store, const struct view *view, int *fd_out);
/* How many waiters live: counted to WAITERS_COUNTED, and from there every ticket is one, so that
 * many who ask about a long queue do not ask every one in it. The page need not be locked; nothing
 * is changed. */
uint64_t hf__ticket_count(struct file_store *store, const struct view *view);

#endif /* HF_STORES_FILE_TICKET_H */
