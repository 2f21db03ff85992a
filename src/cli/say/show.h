/* show.h - how status and list show a lock. The owner is never shown. */
#ifndef HF_CLI_SHOW_H
#define HF_CLI_SHOW_H

#include <holdfast.h>
#include <stdio.h>

/* A lock's listing entry, copied so that it outlives the callback. */
struct cli_lock {
    struct hf_lock_info info; /* its strings are in text */
    char *text;
};

/* False if memory is short. End with cli_lock_clear. */
bool cli_lock_copy(struct cli_lock *lock, const struct hf_lock_info *info);
void cli_lock_clear(struct cli_lock *lock);

/* How JSON has a token: as a number, or as a string, for readers whose numbers end at 2^53. */
enum cli_token_form { CLI_TOKEN_NUMBER, CLI_TOKEN_TEXT };
/* The lock as one JSON object; what is not known is null. */
void cli_lock_json(FILE *out, const struct hf_lock_info *info, enum cli_token_form form);
/* The lock on several lines, for people. */
void cli_lock_print(FILE *out, const struct hf_lock_info *info);
/* Many locks as a table with a heading, for people; unless flat, two slots or more of one resource
 * (say/slots.h) are one line. */
void cli_locks_print(FILE *out, const struct cli_lock *locks, size_t count, bool flat);

/* What the features of a store are called. Returns how many there are. */
enum { CLI_FEATURES_MAX = 7 };
size_t cli_features(unsigned features, const char *names[CLI_FEATURES_MAX]);

#endif /* HF_CLI_SHOW_H */
