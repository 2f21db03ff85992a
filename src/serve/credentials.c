/* credentials.c - the present credentials: read from their file, found by a secret. */
#include "serve/credentials.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct credentials {
    pthread_mutex_t lock;
    struct credential_table *table;
    struct account *accounts;
};

struct credentials *credentials_open(void)
{
    struct credentials *credentials = calloc(1, sizeof *credentials);

    if (credentials != NULL)
        pthread_mutex_init(&credentials->lock, NULL);
    return credentials;
}

/* Called with the mutex held, or when nobody else is left. */
static void unref(struct credential_table *table)
{
    if (table == NULL || --table->refs > 0)
        return;
    credential_table_release(table);
    free(table);
}

void credentials_close(struct credentials *credentials)
{
    if (credentials == NULL)
        return;
    unref(credentials->table);
    while (credentials->accounts != NULL) {
        struct account *account = credentials->accounts;

        credentials->accounts = account->next;
        free(account);
    }
    pthread_mutex_destroy(&credentials->lock);
    free(credentials);
}

static struct account *account_of(struct credentials *credentials, const char *name)
{
    struct account *account = credentials->accounts;

    while (account != NULL && strcmp(account->name, name) != 0)
        account = account->next;
    if (account != NULL)
        return account;
    account = calloc(1, sizeof *account);
    if (account == NULL)
        return NULL;
    (void)stpcpy(account->name, name);
    account->next = credentials->accounts;
    credentials->accounts = account;
    return account;
}

/* The text of the file, to be freed; NULL and *err. */
static char *read_file(const char *path, struct hf_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    char *text = NULL;
    ssize_t len = -1;

    if (fd < 0 || fstat(fd, &st) != 0) {
        (void)hf__fail(err, HF_INVALID, "the credentials file %.120s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode) || st.st_size > CREDENTIALS_FILE_MAX) {
        (void)hf__fail(err, HF_INVALID,
                       "the credentials file %.120s is not a file of at most %d KiB", path,
                       CREDENTIALS_FILE_MAX / 1024);
    } else if ((st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0) {
        (void)hf__fail(
            err, HF_DENIED,
            "the credentials file %.120s can be read or written by others: chmod 0600 it", path);
    } else if ((text = malloc((size_t)st.st_size + 1)) == NULL) {
        (void)hf__nomem(err);
    } else if ((len = read(fd, text, (size_t)st.st_size)) < 0 ||
               memchr(text, '\0', (size_t)len) != NULL) {
        (void)hf__fail(err, HF_INVALID, "the credentials file %.120s is not readable text", path);
        free(text);
        text = NULL;
    } else {
        text[len] = '\0';
    }
    if (fd >= 0)
        (void)close(fd);
    return text;
}

enum hf_status credentials_read(struct credentials *credentials, const char *path,
                                struct hf_error *err)
{
    char *text = read_file(path, err);
    struct credential_table *table;
    unsigned line;
    const char *why;

    if (text == NULL)
        return err->code;
    table = malloc(sizeof *table);
    if (table == NULL) {
        free(text);
        return hf__nomem(err);
    }
    if (!credential_table_parse(text, table, &line, &why)) {
        free(table);
        return hf__fail(err, HF_INVALID, "%.120s, line %u: %s", path, line, why);
    }
    table->refs = 1;
    pthread_mutex_lock(&credentials->lock);
    for (size_t i = 0; i < table->count; i++)
        table->credentials[i].account = account_of(credentials, table->credentials[i].name);
    unref(credentials->table);
    credentials->table = table;
    pthread_mutex_unlock(&credentials->lock);
    return hf__ok(err);
}

struct credential *credentials_find(struct credentials *credentials, const char *secret)
{
    unsigned char hash[CREDENTIAL_HASH_LEN];
    struct credential *found = NULL;

    (void)SHA256((const unsigned char *)secret, strlen(secret), hash);
    pthread_mutex_lock(&credentials->lock);
    /* All of them, so that the time tells nothing. */
    for (size_t i = 0; credentials->table != NULL && i < credentials->table->count; i++)
        if (CRYPTO_memcmp(credentials->table->credentials[i].hash, hash, sizeof hash) == 0)
            found = &credentials->table->credentials[i];
    if (found != NULL)
        found->table->refs++;
    pthread_mutex_unlock(&credentials->lock);
    return found;
}

void credentials_done(struct credentials *credentials, struct credential *credential)
{
    if (credential == NULL)
        return;
    pthread_mutex_lock(&credentials->lock);
    unref(credential->table);
    pthread_mutex_unlock(&credentials->lock);
}

void credential_draw(char secret[CREDENTIAL_SECRET_SIZE], char hash[2 * CREDENTIAL_HASH_LEN + 1])
{
    unsigned char raw[CREDENTIAL_HASH_LEN];

    hf__random(raw, sizeof raw);
    hf__hex_encode(secret, raw, sizeof raw);
    (void)SHA256((const unsigned char *)secret, strlen(secret), raw);
    hf__hex_encode(hash, raw, sizeof raw);
}
