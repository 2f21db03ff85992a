/* stream.h - answers that come line by line (application/x-ndjson): a line now and then while a
 * request waits, which keeps proxies patient, and the last one with the verdict. */
#ifndef HF_SERVE_STREAM_H
#define HF_SERVE_STREAM_H

#include "serve/serve.h"

struct stream {
    struct stream *next; /* stream.c's; those who wait, the next one due first */
    struct stream *prev;
    int fd;
    bool chunked; /* HTTP/1.1; else it ends with the connection */
    int64_t due_ns;
};

/* NULL: no memory, no thread. */
struct streams *streams_open(void);
void streams_close(struct streams *streams);

/* Sends the head. From here on a line is written every two seconds, until stream_end. */
void stream_begin(struct streams *streams, struct stream *stream, struct exchange *x);
/* Sends x->answer as the last line, and the answer becomes one that has been sent. */
void stream_end(struct streams *streams, struct stream *stream, struct exchange *x);

#endif /* HF_SERVE_STREAM_H */
