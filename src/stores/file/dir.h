/* dir.h - the directory of an embedded store: where it is, whether it can be trusted. */
#ifndef HF_STORES_FILE_DIR_H
#define HF_STORES_FILE_DIR_H

#include "stores/file/file.h"
#include <dirent.h>
#include <sys/stat.h>

#define SLOTS_PREFIX "slots-" /* of a slot file's name; the boot id follows */

/* Creates the directory if need be, refuses unsafe ones and network file systems; sets dir_fd.
 * Readonly, dir_fd stays -1 if there is none. */
enum hf_status hf__dir_open(struct file_store *store, struct hf_error *err);
/* *name: of the network file system that an open file or directory is on; NULL if it is on none.
 * False: with errno. */
bool hf__dir_network(int fd, const char **name);
/* fsync of the directories above, as far as we may read them: a directory whose own name is lost
 * with the power takes the floor with it. */
enum hf_status hf__dir_sync_parents(struct file_store *store, struct hf_error *err);
/* flock(2) on the directory, tried until deadline_ns. */
enum hf_status hf__dir_lock(struct file_store *store, int operation, int64_t deadline_ns,
                            struct hf_error *err);
/* A folder below the directory, or ".", to be read and closed. NULL with errno. */
DIR *hf__dir_folder(const struct file_store *store, const char *folder);
/* What it means that there is none, by that errno. A folder that is not there is empty, HF_OK; one
 * that cannot be read is a failure: what is in it must not be taken for nothing. */
enum hf_status hf__dir_no_folder(const struct file_store *store, int error, struct hf_error *err);
/* *out: a slot file other than `except` (NULL: any) is there. */
enum hf_status hf__dir_has_slots(const struct file_store *store, const char *except, bool *out,
                                 struct hf_error *err);
/* Removes every slot file and FIFO. Needs LOCK_EX. */
enum hf_status hf__dir_discard(struct file_store *store, struct hf_error *err);
/* The mode for files: 0600, or 0660 in a shared directory. */
mode_t hf__dir_mode(const struct file_store *store);
/* Opens a small file for reading and writing, made if need be. It appears with all its rights from
 * the start, whatever the umask. -1 with errno. */
int hf__dir_create(struct file_store *store, const char *name);
/* The same for a folder, also one below another. -1 with errno. */
int hf__dir_make_folder(struct file_store *store, const char *name);
/* Refuses files and FIFOs that others could have planted. */
bool hf__dir_trusts(const struct file_store *store, const struct stat *st);

#endif /* HF_STORES_FILE_DIR_H */
