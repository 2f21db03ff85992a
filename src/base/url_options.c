/* url_options.c - what follows the '?' of a URL. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define OPTION_SHOWN_MAX 24   /* bytes of an unknown option's name that may be shown */
#define SLIP_EDITS       2    /* a name further away than this is another name */
#define PARAM_MAX        1024 /* bytes of a key or a value */

bool hf__url_params(const char *query, hf__url_param_fn *fn, void *data)
{
    while (*query != '\0') {
        size_t len = strcspn(query, "&");
        size_t key_len = strcspn(query, "=&");
        size_t value_len = key_len < len ? len - key_len - 1 : 0;
        char key[PARAM_MAX];
        char value[PARAM_MAX];

        if (key_len >= sizeof key || value_len >= sizeof value)
            return false;
        memcpy(key, query, key_len);
        key[key_len] = '\0';
        memcpy(value, query + len - value_len, value_len);
        value[value_len] = '\0';
        if (len > 0 && (!hf__url_decode(key) || !hf__url_decode(value) || !fn(key, value, data)))
            return false;
        query += len + (query[len] == '&');
    }
    return true;
}

/* The known option that key is a slip of, or NULL. */
static const char *nearest(const char *key, const struct hf__url_option *options)
{
    for (; key[0] != '\0' && options->name != NULL; options++)
        if (hf__edit_distance(key, options->name) <= SLIP_EDITS &&
            strlen(options->name) > SLIP_EDITS + 1)
            return options->name;
    return NULL;
}

/* Names the option only if it looks like one: a secret may stand there by mistake. */
static void blame_unknown(char *out, size_t size, const char *key,
                          const struct hf__url_option *options)
{
    size_t len = strlen(key);
    bool plain =
        len > 0 && len <= OPTION_SHOWN_MAX && strspn(key, "abcdefghijklmnopqrstuvwxyz_") == len;
    const char *meant = plain ? nearest(key, options) : NULL;
    size_t used;

    if (plain)
        used = (size_t)snprintf(out, size, "the option \"%s\" is unknown", key);
    else
        used = (size_t)snprintf(out, size, "an option is unknown");
    if (meant != NULL && used < size)
        used += (size_t)snprintf(out + used, size - used, "; did you mean %s?", meant);
    for (size_t i = 0; meant == NULL && options[i].name != NULL && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s %s", i > 0 ? "," : "; known are",
                                 options[i].name);
}

static void blame_value(char *out, size_t size, const struct hf__url_option *option)
{
    char least[32], most[32];

    switch (option->type) {
    case HF__URL_TEXT:
        (void)snprintf(out, size, "the option %s is empty or too long", option->name);
        break;
    case HF__URL_SWITCH:
        (void)snprintf(out, size, "the option %s must be on or off", option->name);
        break;
    case HF__URL_DURATION:
        (void)snprintf(out, size, "the option %s must be a duration from %s to %s", option->name,
                       hf__format_duration(least, sizeof least, option->min),
                       hf__format_duration(most, sizeof most, option->max));
        break;
    case HF__URL_OWN:
        (void)snprintf(out, size, "the option %s has a wrong value", option->name);
        break;
    }
}

static bool set_text(const struct hf__url_option *option, char *out, const char *value)
{
    size_t len = strlen(value);

    if ((int64_t)len < option->min || (int64_t)len > option->max)
        return false;
    memcpy(out, value, len + 1);
    return true;
}

static bool set_duration(const struct hf__url_option *option, void *out, const char *value)
{
    int64_t ms;

    if (!hf__parse_duration_ms(value, &ms) || ms < option->min || ms > option->max)
        return false;
    memcpy(out, &ms, sizeof ms);
    return true;
}

static bool set_value(const struct hf__url_option *option, void *into, const char *value)
{
    char *member = (char *)into + option->offset;
    bool on;

    switch (option->type) {
    case HF__URL_TEXT:
        return set_text(option, member, value);
    case HF__URL_SWITCH:
        on = strcmp(value, "on") == 0;
        memcpy(member, &on, sizeof on);
        return on || strcmp(value, "off") == 0;
    case HF__URL_DURATION:
        return set_duration(option, member, value);
    case HF__URL_OWN:
        break;
    }
    return option->set(into, value);
}

struct reading {
    const struct hf__url_option *options;
    void *into;
    char *why;
    size_t size;
};

static bool read_option(const char *key, const char *value, void *data)
{
    const struct reading *r = data;
    const struct hf__url_option *option = r->options;

    while (option->name != NULL && strcmp(key, option->name) != 0)
        option++;
    if (option->name == NULL) {
        blame_unknown(r->why, r->size, key, r->options);
        return false;
    }
    if (option->fits != NULL && !option->fits(r->into)) {
        (void)snprintf(r->why, r->size, "the option %s does not belong in this URL", option->name);
        return false;
    }
    if (set_value(option, r->into, value))
        return true;
    blame_value(r->why, r->size, option);
    return false;
}

bool hf__url_options(const char *query, const struct hf__url_option *options, void *into, char *why,
                     size_t size)
{
    struct reading reading = {.options = options, .into = into, .why = why, .size = size};

    (void)snprintf(why, size, "an option is too long, or a %% does not start an escape");
    return hf__url_params(query, read_option, &reading);
}
