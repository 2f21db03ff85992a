/* steps.c - the steps of the embedded store, answered. */
#include "steps.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void (*steps_hook)(const char *name);

static const char *signal_step;
static int signal_number;

static void signal_once(const char *name)
{
    if (strcmp(name, signal_step) != 0)
        return;
    steps_hook = NULL;
    (void)kill(getpid(), signal_number);
}

void steps_signal_at(const char *name, int number)
{
    signal_step = name;
    signal_number = number;
    steps_hook = signal_once;
}

struct steps_met *steps_met(void)
{
    static struct steps_met *met;

    if (met == NULL) {
        met = mmap(NULL, sizeof *met, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(met != MAP_FAILED);
    }
    return met;
}

static bool is_met(const struct steps_met *met, const char *name)
{
    for (int i = 0; i < met->count; i++)
        if (strcmp(met->names[i], name) == 0)
            return true;
    return false;
}

static void note(const char *name)
{
    struct steps_met *met = steps_met();

    (void)snprintf(met->last, sizeof met->last, "%s", name);
    if (!is_met(met, name) && met->count < STEP_NAMES_MAX) {
        (void)snprintf(met->names[met->count], STEP_NAME_SIZE, "%s", name);
        met->count++;
    }
}

void hf__step(const char *name)
{
    if (steps_hook != NULL)
        steps_hook(name);
    else if ((kit_plan.ops & KIT_STEP) != 0 && ++kit_plan.seen == kit_plan.at) {
        note(name);
        if (kit_plan.action == KIT_KILL_BEFORE)
            (void)kill(getpid(), SIGKILL);
        else if (kit_plan.action == KIT_STOP_BEFORE)
            (void)raise(SIGSTOP);
    }
}

static void look_through(const char *path, const char *except)
{
    FILE *file = fopen(path, "re");
    char line[256];
    char name[STEP_NAME_SIZE];
    char word[STEP_NAME_SIZE + 2];

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, "HF__STEP(");

        if (at == NULL || line[0] == '#' || sscanf(at, "HF__STEP(%31[a-z_])", name) != 1)
            continue;
        (void)snprintf(word, sizeof word, " %s ", name);
        if (!is_met(steps_met(), name) && strstr(except, word) == NULL)
            fail_msg("step %s of %s was never met", name, path);
    }
    (void)fclose(file);
}

void steps_all_met(const char *except)
{
    glob_t found;

    assert_int_equal(glob("src/stores/file/*.c", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        look_through(found.gl_pathv[i], except);
    globfree(&found);
}
