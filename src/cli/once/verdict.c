/* verdict.c - what is on record about the slot, what follows from it, and how that is said. */
#include "cli/once/once.h"

#include "base/base.h"

void once_settle(struct once *once, int exit_code)
{
    once->turn = ONCE_SETTLED;
    once->exit_code = once->job.exit_code = exit_code;
}

void once_say(struct once *once, const struct hf__once_record *record, const char *advice)
{
    const char *sentence = once->sentence;

    hf__once_sentence(once->sentence, sizeof once->sentence, once->ask.run.name,
                      once->work.slot.name, record);
    if (once->job.lease != NULL)
        cli_stderr_say(once->job.writer, "%s%s", sentence, advice);
    else
        cli_stderr_say_now(once->job.writer, "%s%s", sentence, advice);
}

/* It is not run at all: the end, with that exit code. */
void once_refuse(struct once *once, const struct hf__once_record *record, const char *advice,
                 int exit_code)
{
    once_say(once, record, advice);
    run_events_failed(&once->job, once->sentence);
    once_settle(once, exit_code);
}

void once_say_held(struct once *once, const struct hf__once_record *record)
{
    char advice[HF_NAME_MAX + 128];

    (void)snprintf(advice, sizeof advice,
                   "; find out what became of it, then: holdfast once --clear --reason TEXT %s",
                   once->ask.run.name);
    once_refuse(once, record, advice, EXIT_HF_HELD);
}

void once_skip(struct once *once, const char *advice)
{
    if (!once->ask.run.skip_ok)
        once_say(once, hf__once_on_record(&once->work), advice);
    else
        hf__once_sentence(once->sentence, sizeof once->sentence, once->ask.run.name,
                          once->work.slot.name, hf__once_on_record(&once->work));
    run_events_skipped(&once->job, once->sentence);
}

void once_say_settled(struct once *once, enum hf__once_next next)
{
    switch (next) {
    case HF__ONCE_SAY_DONE:
        once_skip(once, "");
        once_settle(once, (int)once->ask.done_exit);
        break;
    case HF__ONCE_SAY_FAILED:
    case HF__ONCE_SAY_LATE:
        once_refuse(once, hf__once_on_record(&once->work), "", EXIT_HF_NO);
        break;
    case HF__ONCE_SAY_HELD:
        once_say_held(once, hf__once_on_record(&once->work));
        break;
    case HF__ONCE_WRITE_HELD:
    case HF__ONCE_WRITE_LATE:
    case HF__ONCE_SLEEP:
    case HF__ONCE_GO:
        break;
    }
}
