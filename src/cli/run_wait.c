/* run_wait.c - says for whom we wait, or for what.
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
    ERASE_MS = 100,     /* for the terminal, before CMD writes to it                      */
    TROUBLE_MS = 10000, /* a store that does not answer is asked again sooner than this */
    NAME_SHOWN = 32     /* bytes of a lock's name, so that the rest fits                  */
};

#define ERASE "\r\033[K" /* the line of the terminal */

/* What is said. The times come first: a narrow terminal cuts the end off. */
struct line {
    char text[LINE_SIZE];
    size_t used;
};

static void *ticker(void *data);
static bool pause_for(struct run_wait *wait, int64_t ms);
static void describe(struct run_wait *wait, struct line *line);
static bool describe_holder(const struct hf_lock_info *info, void *data);
static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void show(struct run_wait *wait, const char *text);
static void cut_to_terminal(char *text);

void run_wait_begin(struct run_wait *wait, const struct run_patience *patience)
{
    if (!wait->voice)
        return;
    wait->patience = *patience;
    wait->since_ns = hf__now_ns();
    wait->live = isatty(STDERR_FILENO) == 1;
    run_bell_init(&wait->bell);
    /* Without this thread there is no line, and that is all. */
    wait->running = run_thread_start(&wait->thread, ticker, wait);
    if (!wait->running)
        run_bell_clear(&wait->bell);
}

void run_wait_trouble(struct run_wait *wait, const struct hf_error *why)
{
    int64_t lasts_ms = why->code == HF_QUARANTINE ? why->retry_after_ms : TROUBLE_MS;
    if (!wait->running)
        return;
    pthread_mutex_lock(&wait->bell.lock);
    bool news = wait->trouble != why->code;
    wait->trouble = why->code;
    wait->trouble_until_ns = lasts_ms < HF_NEVER / HF__NS_PER_MS
                                 ? hf__time_add(hf__now_ns(), lasts_ms * HF__NS_PER_MS)
                                 : HF_NEVER;
    if (news && !wait->stop) {
        if (wait->painted)
            run_voice_put(wait->voice, ERASE);
        run_say_trouble(wait->voice, &wait->patience, why);
    }
    pthread_mutex_unlock(&wait->bell.lock);
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
    bool spoken = wait->live || !wait->quiet;
    bool go_on = spoken && pause_for(wait, wait->live ? FIRST_LIVE_MS : FIRST_PLAIN_MS);
    while (go_on) {
        struct line line = {.used = 0};
        describe(wait, &line);
        show(wait, line.text);
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

static void add_duration(struct line *line, const char *before, int64_t ms)
{
    char text[32];
    add(line, "%s%s", before, hf__format_duration(text, sizeof text, ms > 0 ? ms : 0));
}

/* What is the matter with the store, HF_OK: nothing that we know of. */
static enum hf_status trouble_now(struct run_wait *wait, int64_t now_ns, int64_t *left_ms)
{
    pthread_mutex_lock(&wait->bell.lock);
    *left_ms = (wait->trouble_until_ns - now_ns) / HF__NS_PER_MS;
    if (now_ns >= wait->trouble_until_ns)
        wait->trouble = HF_OK;
    enum hf_status trouble = wait->trouble;
    pthread_mutex_unlock(&wait->bell.lock);
    return trouble;
}

/* "waiting 12s of 1m for 'job', held 3m20s by LABEL ..." */
static void describe(struct run_wait *wait, struct line *line)
{
    char name[NAME_SHOWN + 1];
    int64_t now_ns = hf__now_ns();
    int64_t left_ms;
    hf__copy_printable(name, sizeof name, wait->name);
    add_duration(line, "waiting ", (now_ns - wait->since_ns) / HF__NS_PER_MS / 1000 * 1000);
    if (wait->patience.until_ns != HF_NEVER)
        add_duration(line, " of ", wait->patience.wait_ms);
    add(line, " for '%s%s'", name, strlen(wait->name) > strlen(name) ? "..." : "");
    enum hf_status trouble = trouble_now(wait, now_ns, &left_ms);
    if (trouble == HF_QUARANTINE)
        add_duration(line, ": quarantine for another ", left_ms);
    else if (trouble != HF_OK)
        add(line, ": the store does not answer");
    else if (hf_inspect(wait->store, wait->name, describe_holder, line, NULL) != HF_OK)
        add(line, ", the store does not say who holds it");
}

static bool describe_holder(const struct hf_lock_info *info, void *data)
{
    struct line *line = data;
    if (!info->held)
        return false;
    add(line, ", held ");
    if (info->age_ms >= 0)
        add_duration(line, "", info->age_ms);
    add(line, "%sby %s", info->age_ms >= 0 ? " " : "",
        info->label[0] ? info->label : "somebody unknown");
    if (info->remaining_ms >= 0)
        add_duration(line, ", ttl ends in ", info->remaining_ms);
    if (info->token)
        add(line, ", token %" PRIu64, info->token);
    if (info->waiters > 1)
        add(line, ", %" PRIu64 " waiting", info->waiters);
    return false;
}

static void add(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line->text + line->used, sizeof line->text - line->used, format, args);
    va_end(args);
    if (len > 0)
        line->used += (size_t)len;
    if (line->used >= sizeof line->text)
        line->used = sizeof line->text - 1;
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
