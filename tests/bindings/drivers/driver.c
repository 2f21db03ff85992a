/* driver.c - does with the library what it is told, line by line: tests/bindings/README.md. */
#include "answers.h"

#include <holdfast/elect.h>
#include <holdfast/once.h>
#include <holdfast/record.h>
#include <holdfast/several.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SLOTS = 8, LINE_SIZE = 4096, WAIT_LOST_MS = 60000 };

struct task {
    pthread_t thread;
    cJSON *line, *answer;
    int cancel_fd;
};

static struct hf_store *store;
/* What a slot holds: one lease, or all of several. */
static struct {
    struct hf_lease *leases[HF_SEVERAL_MAX + 1];
    size_t count;
} held[SLOTS];
static struct task tasks[SLOTS];

static size_t slot(const cJSON *line)
{
    return (size_t)number(line, 0) % SLOTS;
}

static cJSON *taken(const cJSON *line, enum hf_status status, struct hf_lease *const *leases,
                    size_t count, const struct hf_error *err)
{
    char token[32], names[LINE_SIZE] = "";
    cJSON *answer;

    if (status != HF_OK)
        return answered(status, err, HF_LOSS_NONE);
    held[slot(line)].count = count;
    for (size_t i = 0; i < count; i++) {
        held[slot(line)].leases[i] = leases[i];
        (void)snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                       i > 0 ? "+" : "", hf_lease_name(leases[i]));
    }
    (void)snprintf(token, sizeof token, "%llu", (unsigned long long)hf_lease_token(leases[0]));
    answer = said(token);
    cJSON_AddStringToObject(answer, "name", names);
    cJSON_AddNumberToObject(answer, "remaining", (double)hf_all_remaining_ms(leases, count));
    cJSON_AddNumberToObject(answer, "at", now_ms());
    return answer;
}

/* A name, or {"any": names} or {"all": names}. */
static enum hf_status acquire(const cJSON *what, const struct hf_acquire_options *options,
                              struct hf_lease **leases, size_t *count, struct hf_error *err)
{
    const cJSON *any = cJSON_GetObjectItem(what, "any"), *all = cJSON_GetObjectItem(what, "all");
    const cJSON *list = any != NULL ? any : all;
    const char *names[HF_SEVERAL_MAX + 1];
    size_t which, some = 0;

    *count = 1;
    if (list == NULL)
        return hf_acquire(store, cJSON_GetStringValue(what), options, leases, err);
    for (const cJSON *one = list->child; one != NULL && some <= HF_SEVERAL_MAX; one = one->next)
        names[some++] = one->valuestring;
    if (any != NULL)
        return hf_acquire_any(store, names, some, options, leases, &which, err);
    *count = some;
    return hf_acquire_all(store, names, some, options, leases, err);
}

static cJSON *take(const cJSON *line, int cancel_fd)
{
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = (uint32_t)number(line, 2),
                                         .wait_ms = number(line, 3),
                                         .label = text(line, 4),
                                         .cancel_fd = cancel_fd,
                                         .no_keeper = cJSON_IsFalse(arg(line, 5))};
    struct hf_lease *leases[HF_SEVERAL_MAX + 1];
    struct hf_error err;
    size_t count;
    enum hf_status status = acquire(arg(line, 1), &options, leases, &count, &err);

    return taken(line, status, leases, count, &err);
}

static void *run_task(void *data)
{
    struct task *task = data;

    task->answer = take(task->line, task->cancel_fd);
    return NULL;
}

static cJSON *begin(const cJSON *line)
{
    struct task *task = &tasks[slot(line)];

    task->line = cJSON_Duplicate(line, true);
    task->cancel_fd = eventfd(0, EFD_CLOEXEC);
    if (pthread_create(&task->thread, NULL, run_task, task) != 0)
        exit(1);
    return fine();
}

static cJSON *join(const cJSON *line)
{
    struct task *task = &tasks[slot(line)];

    pthread_join(task->thread, NULL);
    (void)close(task->cancel_fd);
    cJSON_Delete(task->line);
    return task->answer;
}

/* Of the first that is lost. */
static enum hf_loss loss_of(struct hf_lease *const *leases, size_t count)
{
    enum hf_loss loss = HF_LOSS_NONE;

    for (size_t i = 0; i < count && loss == HF_LOSS_NONE; i++)
        loss = hf_lease_loss(leases[i]);
    return loss;
}

static cJSON *lost(const cJSON *line)
{
    struct hf_lease **leases = held[slot(line)].leases;
    size_t count = held[slot(line)].count;
    struct pollfd fds[HF_SEVERAL_MAX];
    cJSON *answer;

    for (size_t i = 0; i < count; i++)
        fds[i] = (struct pollfd){.fd = hf_lease_fd(leases[i]), .events = POLLIN};
    (void)poll(fds, count, WAIT_LOST_MS);
    answer = said(reason_of(loss_of(leases, count)));
    cJSON_AddNumberToObject(answer, "at", now_ms());
    return answer;
}

static cJSON *give(struct hf_lease **leases, size_t count)
{
    struct hf_error err;
    enum hf_loss loss = loss_of(leases, count);
    enum hf_status status = hf_release_all(leases, count, &err);

    return answered(status, &err, loss);
}

/* C has no scopes: whoever writes one returns the body's error first. */
static cJSON *body_failed(void)
{
    cJSON *answer = cJSON_CreateObject();

    cJSON_AddStringToObject(answer, "error", "Body");
    cJSON_AddStringToObject(answer, "text", "the body failed");
    return answer;
}

static cJSON *with(const cJSON *line)
{
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = (uint32_t)number(line, 1),
                                         .no_keeper = cJSON_IsFalse(arg(line, 3))};
    const struct timespec pause = {.tv_sec = number(line, 4) / 1000,
                                   .tv_nsec = number(line, 4) % 1000 * 1000000};
    struct hf_lease *leases[HF_SEVERAL_MAX + 1];
    struct hf_error err;
    size_t count;
    enum hf_status status = acquire(arg(line, 0), &options, leases, &count, &err);
    cJSON *answer;

    if (status != HF_OK)
        return answered(status, &err, HF_LOSS_NONE);
    (void)nanosleep(&pause, NULL);
    answer = give(leases, count);
    if (cJSON_IsTrue(arg(line, 2))) {
        cJSON_Delete(answer);
        answer = body_failed();
    }
    return answer;
}

static int64_t given(const cJSON *line, const char *name)
{
    const cJSON *value = cJSON_GetObjectItem(arg(line, 1), name);

    return value != NULL ? (int64_t)value->valuedouble : 0;
}

static cJSON *once(const cJSON *line)
{
    static const char *const words[] = {"open", "run", "done", "failed", "late", "held"};
    struct hf_once_options options = {
        .size = sizeof options,
        .per_ms = given(line, "per"),
        .retries = (uint32_t)given(line, "retries"),
        .wait_ms = given(line, "wait"),
        .tz = cJSON_GetStringValue(cJSON_GetObjectItem(arg(line, 1), "tz")),
        .label = cJSON_GetStringValue(cJSON_GetObjectItem(arg(line, 1), "label"))};
    int64_t failures = number(line, 2);
    bool good = true, ran = false;
    struct hf_error err;
    struct hf_once *work;
    cJSON *answer;
    enum hf_status status = hf_once_open(store, text(line, 0), &options, &work, &err);

    while (status == HF_OK && (status = hf_once_begin(work, &err)) == HF_OK &&
           hf_once_outcome(work) == HF_ONCE_RUN) {
        good = failures-- <= 0;
        status = hf_once_end(work, good ? HF_ONCE_END_SUCCESS : HF_ONCE_END_FAILURE, !good, NULL, 0,
                             &err);
        ran = true;
    }
    if (status != HF_OK) {
        answer = answered(status, &err, HF_LOSS_NONE);
    } else if (!good) {
        answer = body_failed();
    } else {
        answer = said(words[hf_once_outcome(work)]);
        cJSON_AddBoolToObject(answer, "ran", ran);
        cJSON_AddStringToObject(answer, "text", hf_once_text(work));
    }
    hf_once_close(work);
    return answer;
}

static cJSON *get(const cJSON *line)
{
    struct hf_record *record = NULL;
    struct hf_error err;
    enum hf_status status = hf_record_get(store, text(line, 0), text(line, 1), &record, NULL, &err);
    cJSON *answer =
        status == HF_OK ? said(record != NULL ? record->value : NULL) : answered(status, &err, 0);
    char token[32];

    if (record != NULL) {
        (void)snprintf(token, sizeof token, "%llu", (unsigned long long)record->token);
        cJSON_AddStringToObject(answer, "token", token);
    }
    hf_record_free(record);
    return answer;
}

/* hf_elect calls back; a driver that is told line by line does by hand what it does. */
static cJSON *elect(const cJSON *line)
{
    struct hf_acquire_options options = {.size = sizeof options, .wait_ms = -1};
    struct hf_lease *lease;
    struct hf_error err;
    enum hf_status status = hf_acquire(store, text(line, 1), &options, &lease, &err);

    if (status == HF_OK)
        status = hf_record_put(lease, HF_LEADER_KEY, text(line, 2), strlen(text(line, 2)), 0, &err);
    return taken(line, status, &lease, 1, &err);
}

static void saw_leader(const struct hf_leader *leader, void *data)
{
    cJSON *answer = data;
    char term[32];

    (void)snprintf(term, sizeof term, "%llu", (unsigned long long)leader->term);
    cJSON_ReplaceItemInObject(answer, "ok", cJSON_CreateString(term));
    cJSON_AddStringToObject(answer, "address", leader->address);
}

static cJSON *leader(const cJSON *line)
{
    cJSON *answer = said(NULL);
    struct hf_error err;

    if (hf_leader(store, text(line, 0), saw_leader, answer, &err) != HF_OK)
        exit(1);
    return answer;
}

static cJSON *break_hold(const cJSON *line)
{
    struct hf_break_options options = {.size = sizeof options, .reason = text(line, 2)};
    struct hf_error err;
    enum hf_status status =
        hf_break(store, text(line, 0), strtoull(text(line, 1), NULL, 10), &options, NULL, &err);

    return answered(status, &err, HF_LOSS_NONE);
}

static void turn(const char *counter, const char *who)
{
    char log[LINE_SIZE];
    long value;
    FILE *file = fopen(counter, "r+");

    if (file == NULL || fscanf(file, "%ld", &value) != 1)
        exit(1);
    rewind(file);
    fprintf(file, "%ld", value + 1);
    (void)fclose(file);
    (void)snprintf(log, sizeof log, "%s.log", counter);
    file = fopen(log, "a");
    if (file == NULL)
        exit(1);
    fprintf(file, "%s\n", who);
    (void)fclose(file);
}

static cJSON *turns(const cJSON *line)
{
    struct hf_acquire_options options = {.size = sizeof options, .wait_ms = -1};
    struct hf_lease *lease;
    struct hf_error err;

    for (int64_t i = 0; i < number(line, 0); i++) {
        enum hf_status status = hf_acquire(store, text(line, 1), &options, &lease, &err);

        if (status != HF_OK)
            return answered(status, &err, HF_LOSS_NONE);
        turn(text(line, 2), text(line, 3));
        if ((status = hf_release(lease, &err)) != HF_OK)
            return answered(status, &err, HF_LOSS_NONE);
    }
    return fine();
}

static cJSON *check(struct hf_lease *const *leases, size_t count)
{
    struct hf_error err;

    for (size_t i = 0; i < count; i++)
        if (hf_lease_remaining_ms(leases[i]) <= 0)
            return answered(hf_renew(leases[i], 0, &err), &err, hf_lease_loss(leases[i]));
    return fine();
}

static cJSON *with_remaining(cJSON *answer, struct hf_lease *const *leases, size_t count)
{
    cJSON_AddNumberToObject(answer, "remaining", (double)hf_all_remaining_ms(leases, count));
    return answer;
}

static cJSON *open_store(const cJSON *line)
{
    struct hf_open_options options = {.size = sizeof options, .wait_ms = number(line, 1)};
    struct hf_error err;
    enum hf_status status = hf_open_waiting(text(line, 0), &options, &store, &err);

    return status == HF_OK ? said(hf_store_url(store)) : answered(status, &err, HF_LOSS_NONE);
}

static cJSON *change(const char *command, const cJSON *line)
{
    struct hf_lease **leases = held[slot(line)].leases, *lease = leases[0];
    size_t count = held[slot(line)].count;
    struct hf_error err;

    if (strcmp(command, "renew") == 0) {
        enum hf_status status = hf_renew(lease, (uint32_t)number(line, 1), &err);

        return with_remaining(answered(status, &err, hf_lease_loss(lease)), leases, count);
    }
    if (strcmp(command, "put") == 0) {
        enum hf_status status =
            hf_record_put(lease, text(line, 1), text(line, 2), strlen(text(line, 2)), 0, &err);

        return answered(status, &err, hf_lease_loss(lease));
    }
    if (strcmp(command, "check") == 0)
        return check(leases, count);
    if (strcmp(command, "remaining") == 0)
        return with_remaining(fine(), leases, count);
    return give(leases, count);
}

static cJSON *close_store(void)
{
    hf_close(store);
    store = NULL;
    return fine();
}

static cJSON *lock(const cJSON *line)
{
    return take(line, 0);
}

static cJSON *cancel(const cJSON *line)
{
    (void)eventfd_write(tasks[slot(line)].cancel_fd, 1);
    return fine();
}

static cJSON *run(const cJSON *line)
{
    static const struct {
        const char *name;
        cJSON *(*run)(const cJSON *line);
    } commands[] = {{"open", open_store}, {"lock", lock},   {"begin", begin},
                    {"cancel", cancel},   {"join", join},   {"lost", lost},
                    {"with", with},       {"get", get},     {"elect", elect},
                    {"leader", leader},   {"turns", turns}, {"break", break_hold},
                    {"once", once}};
    const char *command = cJSON_GetStringValue(cJSON_GetArrayItem(line, 0));

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(command, commands[i].name) == 0)
            return commands[i].run(line);
    return strcmp(command, "close") == 0 ? close_store() : change(command, line);
}

int main(void)
{
    char line[LINE_SIZE];

    while (fgets(line, sizeof line, stdin) != NULL) {
        cJSON *parsed = cJSON_Parse(line);
        cJSON *answer = run(parsed);
        char *printed = cJSON_PrintUnformatted(answer);

        puts(printed);
        (void)fflush(stdout);
        free(printed);
        cJSON_Delete(answer);
        cJSON_Delete(parsed);
    }
    return 0;
}
