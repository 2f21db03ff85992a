/* hold.h - what is held, given back. */
#ifndef HF_STORES_FILE_HOLD_H
#define HF_STORES_FILE_HOLD_H

#include "stores/file/file.h"

/* Ends a hold, as the slot release has it. */
enum hf_status hf__hold_release(struct file_store *store, const struct hf_claim *claim,
                                struct hf_error *err);

#endif /* HF_STORES_FILE_HOLD_H */
