/* timeline.c - the trap as a story in the terminal. */
#include "cli/trap/trap.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define PLAIN  "\033[0m"
#define BOLD   "\033[1m"
#define DIM    "\033[2m"
#define RED    "\033[1;31m"
#define GREEN  "\033[1;32m"
#define YELLOW "\033[33m"
#define BLUE   "\033[34m"

struct teller {
    FILE *out;
    const struct trap_run *run;
    bool colour;
};

static const char *paint(const struct teller *teller, const char *escape)
{
    return teller->colour ? escape : "";
}

__attribute__((format(printf, 5, 6))) static void line(const struct teller *teller,
                                                       enum trap_step step, const char *who,
                                                       const char *escape, const char *format, ...)
{
    int64_t ms = teller->run->at_ms[step];
    va_list args;

    fprintf(teller->out, "  %s%3" PRId64 ".%03ds%s  %s%-9s%s ", paint(teller, DIM), ms / 1000,
            (int)(ms % 1000), paint(teller, PLAIN), paint(teller, escape), who,
            paint(teller, PLAIN));
    va_start(args, format);
    vfprintf(teller->out, format, args);
    va_end(args);
    fputc('\n', teller->out);
}

static void last_line(const struct teller *teller)
{
    const struct trap_run *run = teller->run;

    if (run->refused)
        line(teller, TRAP_WRITES_1, "worker 1", RED,
             "writes %ld: %sREFUSED%s, token %" PRIu64 " is stale", run->read_1 + TRAP_DEPOSIT_1,
             paint(teller, RED), paint(teller, PLAIN), run->token_1);
    else
        line(teller, TRAP_WRITES_1, "worker 1", RED, "writes %ld %sover it%s",
             run->read_1 + TRAP_DEPOSIT_1, paint(teller, RED), paint(teller, PLAIN));
}

static void verdict(const struct teller *teller)
{
    const struct trap_run *run = teller->run;
    long meant = TRAP_START + TRAP_DEPOSIT_1 + TRAP_DEPOSIT_2;

    if (!trap_sprung(run))
        fprintf(teller->out, "  %s=> %s: the account has %ld%s\n", paint(teller, RED),
                run->fenced ? "THE FENCE DID NOT HOLD" : "the trap did not spring",
                run->final_balance, paint(teller, PLAIN));
    else if (run->fenced)
        fprintf(
            teller->out,
            "  %s=> The account has %ld: nothing is lost, and worker 1 knows that it must start "
            "again.%s\n",
            paint(teller, GREEN), run->final_balance, paint(teller, PLAIN));
    else
        fprintf(teller->out,
                "  %s=> The account has %ld instead of %ld: worker 2's %d are gone, and nobody was "
                "told.%s\n",
                paint(teller, RED), run->final_balance, meant, TRAP_DEPOSIT_2,
                paint(teller, PLAIN));
}

void trap_print(FILE *out, const struct trap_run *run, bool colour)
{
    const struct teller t = {.out = out, .run = run, .colour = colour};
    char left[32];

    fprintf(out, "\n%s%s%s\n", paint(&t, BOLD),
            run->fenced ? "With a fence: the account remembers the highest token it has admitted"
                        : "Without a fence: the lock is all there is",
            paint(&t, PLAIN));
    line(&t, TRAP_TAKES_1, "worker 1", BLUE, "takes the lock, token %" PRIu64, run->token_1);
    line(&t, TRAP_READS_1, "worker 1", BLUE, "%sreads %ld, will add %d; its lease has %s left",
         run->fenced ? "enters the fence, " : "", run->read_1, TRAP_DEPOSIT_1,
         hf__format_duration(left, sizeof left, run->left_ms));
    line(&t, TRAP_FREEZES, "worker 1", YELLOW, "freezes, before it writes (SIGSTOP)");
    line(&t, TRAP_EXPIRES, "lock", DIM, "the lease of worker 1 is over");
    line(&t, TRAP_TAKES_2, "worker 2", GREEN, "takes the lock, token %" PRIu64, run->token_2);
    line(&t, TRAP_READS_2, "worker 2", GREEN, "%sreads %ld, will add %d",
         run->fenced ? "enters the fence, " : "", run->read_2, TRAP_DEPOSIT_2);
    line(&t, TRAP_WRITES_2, "worker 2", GREEN, "writes %ld", run->read_2 + TRAP_DEPOSIT_2);
    line(&t, TRAP_THAWS, "worker 1", YELLOW, "thaws, and carries on where it was (SIGCONT)");
    last_line(&t);
    verdict(&t);
}

const char *trap_short_token(char out[32], uint64_t token, uint64_t other)
{
    uint64_t power = 10000;
    int digits = 4;

    /* As many digits as it takes for the ends to be in the order of the whole tokens. */
    while (power < UINT64_MAX / 10 &&
           (token % power == other % power || (token % power < other % power) != (token < other))) {
        power *= 10;
        digits++;
    }
    if (token < power && other < power)
        (void)snprintf(out, 32, "%" PRIu64, token);
    else
        (void)snprintf(out, 32, "\xe2\x80\xa6%0*" PRIu64, digits, token % power);
    return out;
}
