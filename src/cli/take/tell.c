/* tell.c - says who or what we wait for.
 *
 * On a terminal a line that is repainted every second and erased in the end; elsewhere one plain
 * line if the wait is not over after a second. A thread of its own asks the store, because the main
 * thread waits inside of it. */
#include "cli/take/take.h"

#include "base/base.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    LINE_SIZE = 512,      /* bytes of the line */
    COLUMNS_DEFAULT = 80, /* if the terminal does not say */
    FIRST_LIVE_MS = 150,  /* a shorter wait is not worth a line that blinks */
    FIRST_PLAIN_MS = 1000,
    REPAINT_MS = 1000,
    ERASE_MS = 100,     /* for the terminal, before CMD writes to it */
    TROUBLE_MS = 10000, /* a store that does not answer is asked again sooner than this */
    NAME_SHOWN = 32     /* bytes of a lock's name, so that the rest fits */
};

#define ERASE "\r\033[K" /* the line of the terminal */

/* What is said. The times come first: a narrow terminal cuts the end off. */
struct line {
    char text[LINE_SIZE];
    size_t used;
    const char *name; /* of several, the one that is looked at; else NULL */
    const char *ours; /* our label */
};

static void *ticker(void *data);
static bool pause_for(struct take *take, int64_t ms);
static void describe(struct take *take, struct line *line);
static bool describe_holders(struct take *take, struct line *line);
static bool describe_holder(const struct hf_lock_info *info, void *data);
static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void show(struct take *take, const char *text);
static void cut_to_terminal(char *text);

void take_tell_begin(struct take *take)
{
    if (take->writer == NULL)
        return;
    take->since_ns = hf__now_ns();
    take->live = isatty(STDERR_FILENO) == 1;
    cli_condition_init(&take->condition);
    /* Without this thread there is no line, and that is all. */
    take->running = cli_thread_start(&take->thread, ticker, take);
    if (!take->running)
        cli_condition_clear(&take->condition);
}

void take_tell_trouble(struct take *take, const struct hf_error *why)
{
    int64_t lasts_ms = why->code == HF_QUARANTINE ? why->retry_after_ms : TROUBLE_MS;
    bool news;

    if (!take->running)
        return;
    pthread_mutex_lock(&take->condition.lock);
    news = take->trouble != why->code;
    take->trouble = why->code;
    take->trouble_until_ns = lasts_ms < HF_NEVER / HF__NS_PER_MS
                                 ? hf__time_add(hf__now_ns(), lasts_ms * HF__NS_PER_MS)
                                 : HF_NEVER;
    if (news && !take->stop) {
        if (take->painted)
            cli_stderr_put(take->writer, ERASE);
        take_say_trouble(take, why);
    }
    pthread_mutex_unlock(&take->condition.lock);
}

void take_tell_hush(struct take *take)
{
    if (!take->running)
        return;
    pthread_mutex_lock(&take->condition.lock);
    take->stop = true;
    if (take->painted) {
        cli_stderr_put(take->writer, ERASE);
        cli_stderr_flush(take->writer, ERASE_MS);
    }
    take->painted = false;
    pthread_cond_signal(&take->condition.change);
    pthread_mutex_unlock(&take->condition.lock);
}

void take_end(struct take *take)
{
    if (!take->running)
        return;
    take_tell_hush(take);
    pthread_join(take->thread, NULL);
    cli_condition_clear(&take->condition);
    take->running = false;
}

void take_say_trouble(const struct take *take, const struct hf_error *why)
{
    char left[32];
    int64_t left_ms;

    if (take->until_ns == HF_NEVER) {
        cli_stderr_say(take->writer, "%s; waiting without limit%s", cli_text_of(why),
                       take->always_waits ? "" : " (-w DURATION sets one, -n does not wait)");
        return;
    }
    left_ms = (take->until_ns - hf__now_ns()) / HF__NS_PER_MS;
    (void)hf__format_duration(left, sizeof left, left_ms > 0 ? left_ms : 0);
    cli_stderr_say(take->writer, "%s; waiting for at most %s", cli_text_of(why), left);
}

static void *ticker(void *data)
{
    struct take *take = data;
    bool spoken = take->live || !take->quiet;
    bool go_on = spoken && pause_for(take, take->live ? FIRST_LIVE_MS : FIRST_PLAIN_MS);

    while (go_on) {
        struct line line = {.used = 0};

        describe(take, &line);
        show(take, line.text);
        go_on = take->live && pause_for(take, REPAINT_MS);
    }
    return NULL;
}

/* False if it is time to stop. */
static bool pause_for(struct take *take, int64_t ms)
{
    struct timespec until = cli_condition_time(ms);
    bool go_on;

    pthread_mutex_lock(&take->condition.lock);
    while (!take->stop && cli_condition_wait(&take->condition, &until))
        continue;
    go_on = !take->stop;
    pthread_mutex_unlock(&take->condition.lock);
    return go_on;
}

static void add_duration(struct line *line, const char *before, int64_t ms)
{
    char text[32];

    add(line, "%s%s", before, hf__format_duration(text, sizeof text, ms > 0 ? ms : 0));
}

/* What is the matter with the store, HF_OK: nothing that we know of. */
static enum hf_status trouble_now(struct take *take, int64_t now_ns, int64_t *left_ms)
{
    enum hf_status trouble;

    pthread_mutex_lock(&take->condition.lock);
    *left_ms = (take->trouble_until_ns - now_ns) / HF__NS_PER_MS;
    if (now_ns >= take->trouble_until_ns)
        take->trouble = HF_OK;
    trouble = take->trouble;
    pthread_mutex_unlock(&take->condition.lock);
    return trouble;
}

/* "waiting 12s of 1m for 'job', held 3m20s by LABEL ..." */
static void describe(struct take *take, struct line *line)
{
    char name[NAME_SHOWN + 1];
    int64_t now_ns = hf__now_ns();
    int64_t left_ms;
    enum hf_status trouble;

    hf__copy_printable(name, sizeof name, take->name);
    add_duration(line, "waiting ", (now_ns - take->since_ns) / HF__NS_PER_MS / 1000 * 1000);
    if (take->until_ns != HF_NEVER)
        add_duration(line, " of ", take->wait_ms);
    add(line, " for \"%s%s\"", name, strlen(take->name) > strlen(name) ? "..." : "");
    if (take->count > 1)
        add(line, " %s %zu more", take->kind == TAKE_ALL ? "and" : "or one of", take->count - 1);
    trouble = trouble_now(take, now_ns, &left_ms);
    if (trouble == HF_QUARANTINE)
        add_duration(line, ": quarantine for another ", left_ms);
    else if (trouble != HF_OK)
        add(line, ": the store does not answer");
    else if (!describe_holders(take, line))
        add(line, ", the store does not say who holds it");
}

/* The first that somebody else holds. The connection that waits cannot ask. A line that is
 * repainted keeps another one for as long as it stands there; a single line closes its own at once:
 * fifty processes that wait would be fifty connections. */
static bool describe_holders(struct take *take, struct line *line)
{
    size_t used = line->used;
    struct hf_store *store = take->store;
    bool several = take->count > 1;
    bool good = take->live || hf_open_readonly(take->url, &store, NULL) == HF_OK;

    line->ours = take->shown_label;
    for (size_t i = 0; good && i < (several ? take->count : 1); i++) {
        const char *name = several ? take->names[i] : take->name;

        line->name = several ? name : NULL;
        good = hf_inspect(store, name, describe_holder, line, NULL) == HF_OK;
        if (line->used != used)
            break;
    }
    if (store != take->store)
        hf_close(store);
    return good;
}

static bool describe_holder(const struct hf_lock_info *info, void *data)
{
    struct line *line = data;

    /* Of several, some may be ours already. */
    if (!info->held || (line->name != NULL && strcmp(info->label, line->ours) == 0))
        return false;
    if (line->name != NULL)
        add(line, ", \"%.*s\"", NAME_SHOWN, line->name);
    add(line, "%sheld ", line->name != NULL ? " " : ", ");
    if (info->age_ms >= 0)
        add_duration(line, "", info->age_ms);
    add(line, "%sby %s", info->age_ms >= 0 ? " " : "",
        info->label[0] != '\0' ? info->label : "an unknown holder");
    if (info->revocation != NULL)
        add(line, ", broken by %s",
            info->revocation->by[0] != '\0' ? info->revocation->by : "somebody");
    if (info->endless)
        add(line, ", whose key has no ttl: this never ends by itself");
    else if (info->remaining_ms >= 0)
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
    int len;

    va_start(args, format);
    len = vsnprintf(line->text + line->used, sizeof line->text - line->used, format, args);
    va_end(args);
    if (len > 0)
        line->used += (size_t)len;
    if (line->used >= sizeof line->text)
        line->used = sizeof line->text - 1;
}

static void show(struct take *take, const char *text)
{
    char line[LINE_SIZE + sizeof ERASE] = ERASE "holdfast: ";
    size_t prefix = strlen(line);

    pthread_mutex_lock(&take->condition.lock);
    if (take->stop) {
        /* The wait is over, and the terminal is CMD's. */
    } else if (take->live) {
        hf__copy_printable(line + prefix, sizeof line - prefix, text);
        cut_to_terminal(line + strlen(ERASE));
        cli_stderr_put(take->writer, line);
        take->painted = true;
    } else {
        cli_stderr_say(take->writer, "%s", text);
    }
    pthread_mutex_unlock(&take->condition.lock);
}

/* A line that wraps could not be repainted. */
static void cut_to_terminal(char *text)
{
    struct winsize size;
    size_t columns = COLUMNS_DEFAULT;
    size_t used = 0;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        columns = size.ws_col;
    for (char *at = text; *at != '\0'; at++) {
        if ((*at & 0xc0) != 0x80 && ++used >= columns) {
            *at = '\0';
            return;
        }
    }
}
