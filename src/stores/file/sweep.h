/* sweep.h - removing what the dead left behind. */
#ifndef HF_STORES_FILE_SWEEP_H
#define HF_STORES_FILE_SWEEP_H

#include "stores/file/file.h"

/* Removes FIFOs of the dead, and what their pages of details say. */
void hf__sweep(struct file_store *store);
/* The same, now and then: one client in a number of them does it, once. */
void hf__sweep_sometimes(struct file_store *store);

#endif /* HF_STORES_FILE_SWEEP_H */
