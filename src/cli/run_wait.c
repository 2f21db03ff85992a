/* run_wait.c - says for whom we wait.
 *
 * On a terminal a line that is repainted every second and erased in the end; elsewhere one plain
 * line if the wait is not over after a second. A thread of its own asks the store, because the main
 * thread waits inside of it. */
#include "cli/run.h"

#include "base/base.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    LINE_SIZE = 512,      /* bytes of the line                             */
    COLUMNS_DEFAULT = 80, /* if the terminal does not say                  */
    FIRST_LIVE_MS = 150,  /* a shorter wait is not worth a line that blinks */
    FIRST_PLAIN_MS = 1000,
    REPAINT_MS = 1000,
    ERASE_MS = 100 /* for the terminal, before CMD writes to it */
};

#define ERASE "\r\033[K" /* the line of the terminal */

/* The holder, as the store tells. */
struct holder {
    char text[LINE_SIZE];
    size_t used;
};

static void *ticker(void *data);
static bool pause_for(struct run_wait *wait, int64_t ms);
static bool describe(const struct hf_lock_info *info, void *data);
static void add(struct holder *holder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void show(struct run_wait *wait, const char *text);
static void cut_to_terminal(char *text);

void run_wait_begin(struct run_wait *wait, struct hf_store *store, const char *name,
                    int64_t until_ns)
{
    *wait =
        (struct run_wait){.voice = wait->voice, .store = store, .name = name, .until_ns = until_ns};
    if (!wait->voice)
        return;
    wait->live = isatty(STDERR_FILENO) == 1;
    run_bell_init(&wait->bell);
    /* Without this thread there is no line, and that is all. */
    wait->running = run_thread_start(&wait->thread, ticker, wait);
}

void run_wait_hush(struct run_wait *wait)
{
    if (!wait->running)
        return;
    pthread_mutex_lock(&wait->bell.lock);
    wait->stop = true;
    if (wait->painted) {
        run_voice_put(wait->voice, ERASE);
        run_voice_flush(wait->voice, ERASE_MS);
    }
    wait->painted = false;
    pthread_cond_signal(&wait->bell.change);
    pthread_mutex_unlock(&wait->bell.lock);
}

void run_wait_end(struct run_wait *wait)
{
    if (!wait->running)
        return;
    run_wait_hush(wait);
    pthread_join(wait->thread, NULL);
    run_bell_clear(&wait->bell);
    wait->running = false;
}

static void *ticker(void *data)
{
    struct run_wait *wait = data;
    bool go_on = pause_for(wait, wait->live ? FIRST_LIVE_MS : FIRST_PLAIN_MS);
    while (go_on) {
        struct holder holder = {.used = 0};
        char left[32];
        add(&holder, "waiting for '%s'", wait->name);
        if (hf_inspect(wait->store, wait->name, describe, &holder, NULL) != HF_OK)
            add(&holder, ", the store does not say who holds it");
        if (wait->until_ns != HF_NEVER) {
            int64_t left_ms = (wait->until_ns - hf__now_ns()) / HF__NS_PER_MS;
            hf__format_duration(left, sizeof left, left_ms > 0 ? left_ms : 0);
            add(&holder, "; giving up in %s", left);
        }
        show(wait, holder.text);
        go_on = wait->live && pause_for(wait, REPAINT_MS);
    }
    return NULL;
}

/* False if it is time to stop. */
static bool pause_for(struct run_wait *wait, int64_t ms)
{
    struct timespec until = run_bell_time(ms);
    pthread_mutex_lock(&wait->bell.lock);
    while (!wait->stop && run_bell_wait(&wait->bell, &until))
        continue;
    bool go_on = !wait->stop;
    pthread_mutex_unlock(&wait->bell.lock);
    return go_on;
}

static bool describe(const struct hf_lock_info *info, void *data)
{
    struct holder *holder = data;
    char text[32];
    if (!info->held)
        return false;
    add(holder, ": held by %s", info->label[0] ? info->label : "somebody unknown");
    if (info->token)
        add(holder, " (token %" PRIu64 ")", info->token);
    if (info->age_ms >= 0)
        add(holder, " for %s", hf__format_duration(text, sizeof text, info->age_ms));
    if (info->remaining_ms >= 0)
        add(holder, ", %s of its ttl left",
            hf__format_duration(text, sizeof text, info->remaining_ms));
    if (info->waiters > 1)
        add(holder, "; %" PRIu64 " waiting", info->waiters);
    return false;
}

static void add(struct holder *holder, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len =
        vsnprintf(holder->text + holder->used, sizeof holder->text - holder->used, format, args);
    va_end(args);
    if (len > 0)
        holder->used += (size_t)len;
    if (holder->used >= sizeof holder->text)
        holder->used = sizeof holder->text - 1;
}

static void show(struct run_wait *wait, const char *text)
{
    char line[LINE_SIZE + sizeof ERASE] = ERASE "holdfast: ";
    size_t prefix = strlen(line);
    pthread_mutex_lock(&wait->bell.lock);
    if (wait->stop) {
        /* The wait is over, and the terminal is CMD's. */
    } else if (wait->live) {
        hf__copy_printable(line + prefix, sizeof line - prefix, text);
        cut_to_terminal(line + strlen(ERASE));
        run_voice_put(wait->voice, line);
        wait->painted = true;
    } else {
        run_say(wait->voice, "%s", text);
    }
    pthread_mutex_unlock(&wait->bell.lock);
}

/* A line that wraps could not be repainted. */
static void cut_to_terminal(char *text)
{
    struct winsize size;
    size_t columns = COLUMNS_DEFAULT;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        columns = size.ws_col;
    size_t used = 0;
    for (char *at = text; *at; at++) {
        if ((*at & 0xc0) != 0x80 && ++used >= columns) {
            *at = '\0';
            return;
        }
    }
}
