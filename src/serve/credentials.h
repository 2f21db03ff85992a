/* credentials.h - who may do what: the file of --tokens.
 *
 *     NAME SHA256HEX RIGHT[:PREFIX]...
 *
 * RIGHT is look, lock or metrics. A credential is the secret whose SHA-256 stands there; it goes
 * with a request as "Authorization: Bearer SECRET". A line that starts with # is a comment. */
#ifndef HF_SERVE_CREDENTIALS_H
#define HF_SERVE_CREDENTIALS_H

#include "serve/serve.h"

enum {
    CREDENTIAL_NAME_MAX = 63,       /* bytes of a credential's name */
    CREDENTIALS_FILE_MAX = 1 << 18, /* bytes of the file */
    CREDENTIAL_RIGHTS_MAX = 16,     /* of one credential */
    CREDENTIAL_HASH_LEN = 32,
    CREDENTIAL_SECRET_SIZE = 65 /* hex digits of a secret that we draw, and a NUL */
};

/* How many wait with credentials of one name; outlives a change of the file. */
struct account {
    struct account *next;
    atomic_uint waiters;
    char name[CREDENTIAL_NAME_MAX + 1];
};

struct credential {
    char name[CREDENTIAL_NAME_MAX + 1];
    unsigned char hash[CREDENTIAL_HASH_LEN];
    struct {
        enum right right;
        const char *prefix; /* "": every lock */
    } rights[CREDENTIAL_RIGHTS_MAX];
    size_t right_count;
    struct account *account;
    struct credential_table *table;
};

/* One reading of the file. */
struct credential_table {
    struct credential *credentials;
    size_t count;
    char *text; /* what the prefixes lie in */
    unsigned refs;
};

/* Reads the text of a file. false: *line and *why say what is wrong with it. The table has no
 * accounts yet; ends with credential_table_release. Takes the text, which was allocated and ends
 * with a NUL, in any case. */
bool credential_table_parse(char *text, struct credential_table *out, unsigned *line,
                            const char **why);
void credential_table_release(struct credential_table *table);

/* NULL: no memory. */
struct credentials *credentials_open(void);
void credentials_close(struct credentials *credentials);

/* Reads the file and puts its credentials in the place of those there were. Others must not be able
 * to read or write it. Anything but HF_OK: those there were stay. */
enum hf_status credentials_read(struct credentials *credentials, const char *path,
                                struct hf_error *err);

/* The credential of a secret, compared in constant time; NULL: there is none. It is given back with
 * credentials_done. */
struct credential *credentials_find(struct credentials *credentials, const char *secret);
void credentials_done(struct credentials *credentials, struct credential *credential);

bool credential_may(const struct credential *credential, enum right right, const char *name);

/* Draws a secret of 256 bits, and the hex digits of its hash. */
void credential_draw(char secret[CREDENTIAL_SECRET_SIZE], char hash[2 * CREDENTIAL_HASH_LEN + 1]);
/* A name that may stand in the file. */
bool credential_name_valid(const char *name);

#endif /* HF_SERVE_CREDENTIALS_H */
