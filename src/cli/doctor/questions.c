/* questions.c - three questions, and the command line that the answers lead to. It may be none:
 * most who reach for a lock need something else. */
#include "cli/doctor/doctor.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_SIZE = 64, TRIES = 3 };

/* 1 yes, 0 no, -1: no answer that could be understood. */
static int ask(const char *question)
{
    char answer[ANSWER_SIZE];

    for (int i = 0; i < TRIES; i++) {
        printf("%s [y/n] ", question);
        (void)fflush(stdout);
        if (fgets(answer, sizeof answer, stdin) == NULL)
            break;
        if (answer[0] == 'y' || answer[0] == 'Y')
            return 1;
        if (answer[0] == 'n' || answer[0] == 'N')
            return 0;
    }
    putchar('\n');
    return -1;
}

bool doctor_ask(struct doctor *doctor)
{
    int harmless = ask("If the job ran twice at once now and then, would that be harmless, apart "
                       "from the time it costs?");
    int idempotent = -1;
    int refuses = -1;

    doctor->purpose = DOCTOR_EFFICIENCY;
    if (harmless == 0)
        idempotent = ask("Can a second run be made to change nothing: with an id that is recorded "
                         "with the result, or a unique constraint?");
    if (idempotent == 0)
        refuses = ask("Can what it writes to refuse a writer that comes late: a database table, a "
                      "file, a Redis key, or something that you can change?");
    if (harmless == 1) {
        doctor->advice = DOCTOR_LOCK;
    } else if (idempotent == 1) {
        doctor->advice = DOCTOR_IDEMPOTENCY;
    } else if (refuses >= 0) {
        doctor->advice = refuses == 1 ? DOCTOR_FENCE : DOCTOR_ONE_WRITER;
        doctor->purpose = DOCTOR_CORRECTNESS;
    } else {
        cli_error("no answer; \"holdfast doctor --for efficiency\" or \"--for correctness\" asks "
                  "nothing");
        return false;
    }
    putchar('\n');
    return true;
}

/* A word as the shell takes it. */
static void print_word(const char *word)
{
    if (word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,@=+-"
                          "#")] == '\0') {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (; *word != '\0'; word++)
        fputs(*word == '\'' ? "'\\''" : (const char[]){*word, '\0'}, stdout);
    putchar('\'');
}

static void print_start(const struct doctor *doctor)
{
    fputs("    holdfast ", stdout);
    if (doctor->url != NULL) {
        fputs("--store ", stdout);
        print_word(doctor->shown.text);
        putchar(' ');
    }
}

static void print_fenced(const struct doctor *doctor)
{
    const struct audit_fences *fences = &doctor->fences;
    struct cli_shown shown;

    print_start(doctor);
    fputs("run --require correctness", stdout);
    if (fences->has_db) {
        fputs(" --db ", stdout);
        print_word(cli_shown(&shown, fences->db));
    }
    for (size_t i = 0; i < fences->named.count; i++) {
        fputs(" --fence ", stdout);
        print_word(cli_shown(&shown, fences->named.items[i]));
    }
    if (fences->named.count == 0)
        fputs(" --fence RESOURCE", stdout);
    puts(" NAME -- CMD\n\nCMD writes through the fence with $HOLDFAST_TOKEN: man holdfast-fence.");
}

void doctor_tell_advice(const struct doctor *doctor)
{
    switch (doctor->advice) {
    case DOCTOR_NO_ADVICE:
        return;
    case DOCTOR_LOCK:
        puts("\nA lock saves the work of the second run:");
        print_start(doctor);
        puts("run NAME -- CMD");
        break;
    case DOCTOR_IDEMPOTENCY:
        puts("\nYou need no lock: a unique constraint refuses the second one, and depends on no "
             "clock:");
        puts("    holdfast idem sql --dialect postgres | psql\n\nFor a job that should run once "
             "per day, and costs something:");
        print_start(doctor);
        puts("once --per 1d KEY -- CMD");
        break;
    case DOCTOR_FENCE:
        puts("\nA lock keeps others away, and the fence keeps the data right:");
        print_fenced(doctor);
        break;
    case DOCTOR_ONE_WRITER:
        puts(
            "\nYou need no lock: none can make this right, because a writer that comes late cannot "
            "be refused. What can:\n"
            "    a queue       one consumer takes each task, and only one: SELECT ... FOR UPDATE "
            "SKIP LOCKED\n"
            "    a constraint  the database refuses the second: UNIQUE, EXCLUDE\n"
            "    a partition   each key has one writer, and no two share any");
        break;
    }
}
