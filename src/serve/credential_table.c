/* credential_table.c - the text of a file of credentials, read without I/O; and what one may. */
#include "serve/credentials.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { CREDENTIALS_MAX = 1000 }; /* lines with a credential */

static const char name_chars[] = "0123456789._@-"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

bool credential_name_valid(const char *name)
{
    size_t len = strspn(name, name_chars);

    return len > 0 && len <= CREDENTIAL_NAME_MAX && name[len] == '\0';
}

static bool take_right(char *word, struct credential *out, const char **why)
{
    static const struct {
        const char *name;
        enum right right;
    } known[] = {{"look", RIGHT_LOOK}, {"lock", RIGHT_LOCK}, {"metrics", RIGHT_METRICS}};
    char *prefix = strchr(word, ':');

    if (prefix != NULL)
        *prefix++ = '\0';
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, word) != 0)
            continue;
        *why = "a credential has at most 16 rights";
        if (out->right_count == CREDENTIAL_RIGHTS_MAX)
            return false;
        *why = "metrics are of all locks: the right has no prefix";
        if (known[i].right == RIGHT_METRICS && prefix != NULL)
            return false;
        out->rights[out->right_count].right = known[i].right;
        out->rights[out->right_count++].prefix = prefix != NULL ? prefix : "";
        return true;
    }
    *why = "a right is look, lock or metrics, followed by :PREFIX if it is not for all locks";
    return false;
}

static bool take_credential(char *line, struct credential *out, const char **why)
{
    const char *name = strsep(&line, " \t");
    const char *hash = line != NULL ? strsep(&line, " \t") : "";

    *why = "a line is NAME SHA256HEX RIGHT[:PREFIX]..., and a NAME has letters, digits and ._@-";
    if (!credential_name_valid(name))
        return false;
    (void)stpcpy(out->name, name);
    while (hash != NULL && *hash == '\0' && line != NULL)
        hash = strsep(&line, " \t");
    if (hash == NULL || !hf__hex_decode(out->hash, sizeof out->hash, hash))
        return false;
    while (line != NULL) {
        char *word = strsep(&line, " \t");

        if (word[0] != '\0' && !take_right(word, out, why))
            return false;
    }
    *why = "the credential has no right at all";
    return out->right_count > 0;
}

/* Room for one more credential, zeroed. */
static struct credential *add(struct credential_table *table)
{
    struct credential *more;

    if (table->count == CREDENTIALS_MAX)
        return NULL;
    more = realloc(table->credentials, (table->count + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    table->credentials = more;
    more += table->count++;
    memset(more, 0, sizeof *more);
    return more;
}

bool credential_table_parse(char *text, struct credential_table *out, unsigned *line,
                            const char **why)
{
    char *rest = text;

    *out = (struct credential_table){.text = text};
    *line = 0;
    while (rest != NULL) {
        char *one = strsep(&rest, "\n");
        struct credential *credential;

        ++*line;
        one += strspn(one, " \t");
        if (one[0] == '\0' || one[0] == '#')
            continue;
        *why = "there are too many credentials, or too little memory";
        credential = add(out);
        if (credential == NULL || !take_credential(one, credential, why)) {
            credential_table_release(out);
            return false;
        }
    }
    for (size_t i = 0; i < out->count; i++)
        out->credentials[i].table = out;
    return true;
}

void credential_table_release(struct credential_table *table)
{
    free(table->credentials);
    free(table->text);
    *table = (struct credential_table){0};
}

bool credential_may(const struct credential *credential, enum right right, const char *name)
{
    for (size_t i = 0; i < credential->right_count; i++) {
        const char *prefix = credential->rights[i].prefix;

        if (credential->rights[i].right == right &&
            (name == NULL || strncmp(name, prefix, strlen(prefix)) == 0))
            return true;
    }
    return false;
}
