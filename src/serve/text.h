/* text.h - text that grows: the bodies and extra header lines of answers. */
#ifndef HF_SERVE_TEXT_H
#define HF_SERVE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Starts zeroed. */
struct text {
    char *data; /* not ended by a NUL */
    size_t len;
    size_t size;
    bool failed; /* no memory: what was added since is missing */
};

void text_add(struct text *text, const void *data, size_t len);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void text_json(struct text *text, const char *string);
/* Empty, for reuse. */
void text_clear(struct text *text);
void text_release(struct text *text);

#endif /* HF_SERVE_TEXT_H */
