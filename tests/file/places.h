/* places.h - what the tests share about places in which a store cannot be, or not safely.
 *
 * What needs root is skipped without it. */
#ifndef HF_TESTS_PLACES_H
#define HF_TESTS_PLACES_H

#include "../support/faultkit.h"

#define SKIPPED 77 /* the exit status of a child that may not do what it is to try */

/* Users and a group that do not exist. */
#define USER_1 60001
#define USER_2 60002
#define GROUP  60100

/* In a child, where a test cannot fail: they end it, and say why. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            kit_die("line %d: %s", __LINE__, #condition);                                          \
    } while (0)
void expect(enum hf_status got, enum hf_status want, const struct hf_error *err, int line);

/* Runs fn in a child; skips the test if that says so. */
void in_child(void (*fn)(void *), const char *dir);
/* In a child: is that user from now on. */
void become(uid_t uid, gid_t group);

/* Opens the store in dir, with what the URL has behind it: "" or "?...". */
enum hf_status try_open(const char *dir, const char *parameter, struct hf_store **out,
                        struct hf_error *err);

#endif /* HF_TESTS_PLACES_H */
