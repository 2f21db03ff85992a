/* url_blame.c - what to say about options that hf__url_params refused. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define OPTION_SHOWN_MAX 24 /* bytes of an unknown option's name that may be shown */
#define SLIP_EDITS       2  /* a name further away than this is another name         */

struct blame {
    hf__url_param_fn *fn;
    void *data;
    const char *const *known;
    bool refused;
    const char *wrong; /* refused, and one of the known */
    char key[OPTION_SHOWN_MAX + 1];
};

/* Only what looks like an option: who knows what was put there by mistake. */
static void note_key(struct blame *blame, const char *key)
{
    size_t len = strlen(key);

    if (len <= OPTION_SHOWN_MAX && strspn(key, "abcdefghijklmnopqrstuvwxyz_") == len)
        (void)snprintf(blame->key, sizeof blame->key, "%s", key);
}

static bool look_for_blame(const char *key, const char *value, void *data)
{
    struct blame *blame = data;

    blame->refused = !blame->fn(key, value, blame->data);
    for (size_t i = 0; blame->refused && blame->known[i] != NULL; i++)
        if (strcmp(key, blame->known[i]) == 0)
            blame->wrong = blame->known[i];
    if (blame->refused && blame->wrong == NULL)
        note_key(blame, key);
    return !blame->refused;
}

/* The known option that key is a slip of, or NULL. */
static const char *nearest(const char *key, const char *const *known)
{
    for (size_t i = 0; key[0] != '\0' && known[i] != NULL; i++)
        if (hf__edit_distance(key, known[i]) <= SLIP_EDITS && strlen(known[i]) > SLIP_EDITS + 1)
            return known[i];
    return NULL;
}

static void blame_unknown(char *out, size_t size, const char *key, const char *const *known)
{
    const char *meant = nearest(key, known);
    size_t used;

    if (key[0] != '\0')
        used = (size_t)snprintf(out, size, "the option \"%s\" is unknown", key);
    else
        used = (size_t)snprintf(out, size, "an option is unknown");
    if (meant != NULL && used < size)
        used += (size_t)snprintf(out + used, size - used, "; did you mean %s?", meant);
    for (size_t i = 0; meant == NULL && known[i] != NULL && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s %s", i > 0 ? "," : "; known are",
                                 known[i]);
}

void hf__url_blame(char *out, size_t size, const char *query, const char *const *known,
                   hf__url_param_fn *fn, void *data)
{
    struct blame blame = {.fn = fn, .data = data, .known = known};

    if (hf__url_params(query, look_for_blame, &blame) || !blame.refused)
        (void)snprintf(out, size, "an option is too long, or a %% starts no escape");
    else if (blame.wrong != NULL)
        (void)snprintf(out, size, "the option %s has a wrong value, or no place in this URL",
                       blame.wrong);
    else
        blame_unknown(out, size, blame.key, known);
}
