/* voice.h - what is said while a lock is held, or wanted. None of it blocks, whatever becomes of
 * stderr; cli_error does. All of it may be called from any thread. */
#ifndef HF_CLI_SAY_VOICE_H
#define HF_CLI_SAY_VOICE_H

#include "cli/cli.h"

struct run_voice;

/* NULL if memory is short. run_voice_close takes NULL. */
struct run_voice *run_voice_open(void);
/* Waits a moment for whoever reads; what is not said by then is not said at all. The process has to
 * end after that. */
void run_voice_close(struct run_voice *voice);
/* As cli_error and cli_fail do. */
void run_say(struct run_voice *voice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int run_fail(struct run_voice *voice, const struct hf_error *err);
/* The same for a text as it is. */
void run_voice_put(struct run_voice *voice, const char *text);
/* Waits until everything is said, but no longer than this. */
void run_voice_flush(struct run_voice *voice, int64_t patience_ms);

#endif /* HF_CLI_SAY_VOICE_H */
