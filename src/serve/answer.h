/* answer.h - how statuses become answers. */
#ifndef HF_SERVE_ANSWER_H
#define HF_SERVE_ANSWER_H

#include "serve/serve.h"

/* The HTTP code of a status. */
int answer_code(enum hf_status status);

/* As serve_fail; more has further members of the object, each with a comma before it. */
void answer_fail(struct exchange *x, const struct hf_error *err, const struct text *more);

/* 200 and an object with these members, "\"token\": ..." for instance. */
void answer_ok(struct exchange *x, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a head and the body to out: what goes over the wire. */
void answer_write(const struct exchange *x, struct text *out);
/* The lines that every answer has, also that of a stream. */
void answer_common(struct text *out, const char *status);

#endif /* HF_SERVE_ANSWER_H */
