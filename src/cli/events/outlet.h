/* outlet.h - the file of --events, to which many processes append. */
#ifndef HF_CLI_EVENTS_OUTLET_H
#define HF_CLI_EVENTS_OUTLET_H

#include <stdbool.h>
#include <stddef.h>

struct outlet {
    const char *path; /* "-": standard output */
    int fd;           /* -1: not open */
    bool torn;        /* the last line was cut off in the middle */
};

/* Appends a line, in one write. False, with errno, if it is not there as a whole; EAGAIN: nothing
 * of it, because whoever reads has no room for it yet. A file that was moved away is made anew. */
bool outlet_write(struct outlet *outlet, const char *line, size_t len);
void outlet_close(struct outlet *outlet);

#endif /* HF_CLI_EVENTS_OUTLET_H */
