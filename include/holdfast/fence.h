/* holdfast/fence.h - the check at the resource.
 *
 * A lock cannot stop a holder that was frozen past its deadline and wakes up in the middle of a
 * write. The resource can: it remembers the highest token it has admitted, its mark, and refuses a
 * lower one as stale. That is the whole rule:
 *
 *     admit iff token >= the highest token admitted; remember the highest durably, with the write.
 *
 * Three ways to have it:
 *   - a file: hf_fence_write, hf_fence_append, hf_fence_enter keep the mark in a sidecar;
 *   - a key in a store that can hold data (Redis, etcd, ZooKeeper): hf_fence_key;
 *   - any other storage: hf_fence_admit runs the rule over a mark that you load and save in your
 *     own transaction. (For SQL databases `holdfast fence sql` prints a migration instead.)
 *
 * A holder enters before its first read. Otherwise a stale write can slip in between its read and
 * its write, and it overwrites what it never saw.
 *
 * Tokens of different stores cannot be compared. So a mark remembers its issuer, the store that
 * issued the token, as a short text: hf_store_identity, or the store's url without its password
 * (one that has it loses it). A mark that names a url takes on the identity when both come. A token
 * of another issuer is refused with HF_INVALID until someone decides, with hf_fence_reset and a
 * reason, that the old tokens are over. An issuer that is not given ("" or NULL) fits every mark.
 *
 * Every call may be used from several threads. None touches a lock or needs a lease. */
#ifndef HOLDFAST_FENCE_H
#define HOLDFAST_FENCE_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_FENCE_TOKEN_MAX ((uint64_t)INT64_MAX)

enum {
    HF_FENCE_ISSUER_MAX = 200,              /* bytes of an issuer; a longer one is cut and hashed */
    HF_FENCE_REASON_MAX = 200,              /* bytes of the reason for a reset; the rest is cut */
    HF_FENCE_WAIT_MS = 30000,               /* how long another writer is waited for */
    HF_FENCE_APPEND_MAX = 64 * 1024 * 1024, /* bytes of one append: a record, not an archive */
    HF_FENCE_KEY_MAX = 1024,                /* bytes of a fenced key's name */
    HF_FENCE_VALUE_MAX = 4 * 1024 * 1024    /* bytes of a fenced key's value */
};

/* What a resource remembers. All zero: nothing was admitted yet. */
struct hf_fence_mark {
    uint64_t token;      /* the highest admitted */
    int64_t admitted_us; /* wall clock when it was first admitted; for people, no decision */
    char issuer[HF_FENCE_ISSUER_MAX + 1]; /* "": not known */
};

/* What a writer shows. */
struct hf_fence_pass {
    size_t size;        /* sizeof(struct hf_fence_pass) */
    uint64_t token;     /* hf_lease_token, 1..HF_FENCE_TOKEN_MAX */
    const char *issuer; /* hf_store_identity of the store that issued it; NULL or "": not given */
    int64_t wait_ms;    /* how long to wait for another writer; 0: HF_FENCE_WAIT_MS; < 0: not */
    const char *issuer_url; /* hf_store_url, beside an identity in issuer, or alone if that is not
                             * known: so that marks which name a URL are understood. May be NULL */
};

enum hf_fence_verdict {
    HF_FENCE_ADMIT,   /* equal to the mark */
    HF_FENCE_RAISE,   /* admitted, but the changed mark must be stored first */
    HF_FENCE_STALE,   /* below the mark */
    HF_FENCE_FOREIGN, /* issued by another store than the mark's */
    HF_FENCE_BAD      /* no token: 0, or above HF_FENCE_TOKEN_MAX */
};

/* hf_fence_decide - the pure rule. No I/O, no clock; never blocks.
 * With HF_FENCE_RAISE, mark becomes what has to be stored, admitted_us being now_us if the token
 * rose; with every other verdict it is untouched. */
HF_API HF_MUST_CHECK enum hf_fence_verdict hf_fence_decide(struct hf_fence_mark *mark,
                                                           uint64_t token, const char *issuer,
                                                           int64_t now_us);

/* hf_fence_refuse - the status and the sentence that go with a verdict.
 * HF_OK for HF_FENCE_ADMIT and _RAISE; HF_STALE ("token 33 is stale: 34 was admitted at ...");
 * HF_INVALID for the others. resource names what was to be written. */
HF_API enum hf_status hf_fence_refuse(enum hf_fence_verdict verdict,
                                      const struct hf_fence_mark *mark,
                                      const struct hf_fence_pass *pass, const char *resource,
                                      struct hf_error *err);

/* Your own storage: how the mark is read and written inside the transaction that also does the
 * write. load leaves *mark zeroed if there is none, and must keep others from changing it until
 * the transaction ends (SELECT ... FOR UPDATE). Both answer HF_OK or fill *err. */
struct hf_fence_storage {
    size_t size;          /* sizeof(struct hf_fence_storage) */
    const char *resource; /* its name in error texts */
    enum hf_status (*load)(void *data, struct hf_fence_mark *mark, struct hf_error *err);
    enum hf_status (*save)(void *data, const struct hf_fence_mark *mark, struct hf_error *err);
    void *data;
};

/* hf_fence_admit - load, decide, save if the mark rose. Blocks as load and save do.
 *
 * HF_OK       admitted: write, in the same transaction
 * HF_STALE    refused: roll back, and stop working
 * HF_INVALID  no token, or a token of another issuer
 * and whatever load or save answered */
HF_API HF_MUST_CHECK enum hf_status hf_fence_admit(const struct hf_fence_storage *storage,
                                                   const struct hf_fence_pass *pass,
                                                   struct hf_error *err);

/* Files. The mark of DIR/NAME is in DIR/.NAME.fence, which is locked while anybody enters or
 * writes, raised and synced before the data changes, and never removed. NAME may be a symbolic link
 * to a name in DIR; a link that leads elsewhere is refused (HF_DENIED), and so are a NAME that is
 * not a regular file and a sidecar that others may write.
 *
 * What the fence cannot do: stop a process that writes to the file without it, or that opened the
 * file earlier. Removing the sidecar forgets the mark.
 *
 * All of them answer:
 * HF_OK           done, and durable
 * HF_STALE        the token is below the mark; nothing was changed
 * HF_INVALID      no token, a token of another issuer, a bad path
 * HF_BUSY         another writer was inside for wait_ms
 * HF_DENIED       permissions, or an unsafe link or sidecar
 * HF_CORRUPT      the sidecar is damaged; the text names the remedy
 * HF_UNREACHABLE  no such directory, a full disk, an I/O error. The mark may have risen; the file
 *                 has its old content, or (after a failed sync) perhaps the new one
 * HF_NOMEM */

/* hf_fence_enter - raise the mark, before the first read. Changes no data. */
HF_API HF_MUST_CHECK enum hf_status hf_fence_enter(const char *path,
                                                   const struct hf_fence_pass *pass,
                                                   struct hf_error *err);

/* hf_fence_write - replace the file with len bytes of data: all of it or nothing, at every crash.
 * The file keeps its mode, and its owner where that is allowed. */
HF_API HF_MUST_CHECK enum hf_status hf_fence_write(const char *path,
                                                   const struct hf_fence_pass *pass,
                                                   const void *data, size_t len,
                                                   struct hf_error *err);

/* hf_fence_write_fd - the same with everything that can be read from fd, up to its end.
 * The input is read first, before anybody is made to wait, and the token is judged after it. */
HF_API HF_MUST_CHECK enum hf_status hf_fence_write_fd(const char *path,
                                                      const struct hf_fence_pass *pass, int fd,
                                                      struct hf_error *err);

/* hf_fence_append - add len bytes (at most HF_FENCE_APPEND_MAX) to the end of the file. A crash in
 * the middle leaves a part of them; the next call on the file removes it. */
HF_API HF_MUST_CHECK enum hf_status hf_fence_append(const char *path,
                                                    const struct hf_fence_pass *pass,
                                                    const void *data, size_t len,
                                                    struct hf_error *err);

/* hf_fence_read_mark - the mark of a file; all zero if nothing was admitted yet. Waits for
 * nobody. */
HF_API HF_MUST_CHECK enum hf_status hf_fence_read_mark(const char *path, struct hf_fence_mark *mark,
                                                       struct hf_error *err);

/* hf_fence_reset - start again: the mark becomes token (0: none) of issuer ("" or NULL: the first
 * that comes). For a change of stores, a restored backup, or a damaged sidecar. The reason is
 * required and is kept in the sidecar, with the time, the user and the old mark. Make sure first
 * that no holder of the old tokens is left: they can be admitted again. */
HF_API HF_MUST_CHECK enum hf_status hf_fence_reset(const char *path, uint64_t token,
                                                   const char *issuer, const char *reason,
                                                   struct hf_error *err);

/* SQL databases: the text of a migration. */
enum hf_fence_dialect { HF_FENCE_POSTGRES, HF_FENCE_SQLITE, HF_FENCE_MARIADB };

struct hf_fence_sql {
    size_t size; /* sizeof(struct hf_fence_sql) */
    enum hf_fence_dialect dialect;
    const char *table;  /* one identifier, quoted for you, whatever is in it */
    const char *schema; /* PostgreSQL: the table's schema; NULL: found by search_path */
    /* What enter() is called with; NULL: the table's name, in PostgreSQL with its schema:
     * public.orders. */
    const char *resource;
    bool per_row;           /* guard UPDATE of existing rows only, by a column fence_token */
    bool down;              /* the reverse */
    bool last;              /* with down: no other table is fenced, remove what they share */
    const char *key_column; /* fence per key: a holder of key K writes rows whose column says K */
    bool no_transaction;    /* no BEGIN and COMMIT, for tools that run it in a transaction */
    bool json;              /* a JSON array with one statement per item, no client's commands */
};

/* hf_fence_sql - the migration that puts a table behind a fence. Never blocks.
 * *out is the caller's, to be freed with free(). HF_OK; HF_INVALID: a name that is empty, too long
 * or has control characters; HF_NOMEM. */
HF_API HF_MUST_CHECK enum hf_status hf_fence_sql(const struct hf_fence_sql *what, char **out,
                                                 struct hf_error *err);

/* Keys in a store. */
enum hf_fence_op {
    HF_FENCE_SET,
    HF_FENCE_DEL,
    HF_FENCE_ENTER_KEY,
    HF_FENCE_RESET_KEY,
    HF_FENCE_READ_KEY /* changes nothing; only by hf_fence_read_key */
};

struct hf_fence_request {
    size_t size; /* sizeof(struct hf_fence_request) */
    enum hf_fence_op op;
    const char *key; /* as the store knows it, no prefix added; up to HF_FENCE_KEY_MAX bytes */
    uint64_t token;
    const char *issuer; /* as in struct hf_fence_pass */
    const void *value;  /* SET: the new value */
    size_t value_len;
    uint32_t ttl_ms;        /* SET: the key expires after it; 0: never. The mark does not expire */
    const char *reason;     /* RESET_KEY: required, recorded */
    int64_t deadline_ns;    /* filled in by hf_fence_key */
    const char *issuer_url; /* as in struct hf_fence_pass */
};

/* hf_fence_key - set, delete, enter or reset a fenced key of a store, in one atomic step there.
 * The mark lives beside the key and outlives its deletion. Blocks for a few seconds at most.
 *
 * HF_OK, HF_STALE, HF_INVALID   as for files
 * HF_UNSUPPORTED  the store holds no data (file:, redlock: ...); a ttl in ZooKeeper
 * HF_UNKNOWN      no reply came: the write may have been done. Doing it again is safe
 * HF_UNREACHABLE, HF_DENIED, HF_CORRUPT, HF_NOMEM */
HF_API HF_MUST_CHECK enum hf_status hf_fence_key(struct hf_store *store,
                                                 const struct hf_fence_request *request,
                                                 struct hf_error *err);

/* hf_fence_read_key - the mark of a fenced key; all zero if nothing was admitted yet. Changes
 * nothing. Answers as hf_fence_key. */
HF_API HF_MUST_CHECK enum hf_status hf_fence_read_key(struct hf_store *store, const char *key,
                                                      struct hf_fence_mark *mark,
                                                      struct hf_error *err);

/* The script behind hf_fence_key for Redis, for clients in other languages: it explains itself. */
HF_API const char *hf_fence_script(void);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_FENCE_H */
