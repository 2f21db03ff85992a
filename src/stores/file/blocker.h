/* blocker.h - who sits on a byte lock? */
#ifndef HF_STORES_FILE_BLOCKER_H
#define HF_STORES_FILE_BLOCKER_H

#include <holdfast.h>
#include <sys/types.h>

/* "process 12 (name, stopped)" for whoever holds the lock on a byte of the file; false if that
 * cannot be told. */
bool hf__blocker_name(int fd, off_t byte, char *out, size_t size);

#endif /* HF_STORES_FILE_BLOCKER_H */
