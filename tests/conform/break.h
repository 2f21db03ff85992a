/* break.h - what the tests of breaks share. */
#ifndef HF_TESTS_CONFORM_BREAK_H
#define HF_TESTS_CONFORM_BREAK_H

#include "conform.h"

#define BREAKER "host/2/breaker"

/* Breaks the hold with that token; what is not answered is asked again, which does no harm. */
enum hf_status break_token(struct hf_store_base *store, const struct hold *hold, uint64_t token,
                           bool now, struct hf_broken *out);

/* The same theme in a further file. */
void add_break_race_tests(struct suite *suite);

#endif /* HF_TESTS_CONFORM_BREAK_H */
