/* stderr.h - what is said while a lock is held, or wanted. None of it blocks, whatever becomes of
 * stderr; cli_error does. All of it may be called from any thread. */
#ifndef HF_CLI_SAY_STDERR_H
#define HF_CLI_SAY_STDERR_H

#include "cli/cli.h"

struct cli_stderr;

/* NULL if memory is short. cli_stderr_close takes NULL. */
struct cli_stderr *cli_stderr_open(void);
/* Waits a moment for whoever reads; what is not said by then is not said at all. The process has to
 * end after that. */
void cli_stderr_close(struct cli_stderr *writer);
/* As cli_error and cli_fail do. */
void cli_stderr_say(struct cli_stderr *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int cli_stderr_fail(struct cli_stderr *writer, const struct hf_error *err);
/* The same while no lock is held: written at once if stderr takes it, which spares the thread. */
void cli_stderr_say_now(struct cli_stderr *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for a text as it is. */
void cli_stderr_put(struct cli_stderr *writer, const char *text);
/* Waits until everything is said, but no longer than this. */
void cli_stderr_flush(struct cli_stderr *writer, int64_t limit_ms);

#endif /* HF_CLI_SAY_STDERR_H */
