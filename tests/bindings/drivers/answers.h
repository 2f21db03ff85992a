/* answers.h - what the driver in C reads in a line, and how it answers. */
#ifndef HF_TESTS_BINDINGS_DRIVERS_ANSWERS_H
#define HF_TESTS_BINDINGS_DRIVERS_ANSWERS_H

#include <cjson/cJSON.h>
#include <holdfast.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static const cJSON *arg(const cJSON *line, int at)
{
    return cJSON_GetArrayItem(line, at + 1);
}
static const char *text(const cJSON *line, int at)
{
    return cJSON_GetStringValue(arg(line, at));
}
static int64_t number(const cJSON *line, int at)
{
    return arg(line, at) != NULL ? (int64_t)arg(line, at)->valuedouble : 0;
}

static cJSON *fine(void)
{
    cJSON *answer = cJSON_CreateObject();

    cJSON_AddTrueToObject(answer, "ok");
    return answer;
}

static cJSON *said(const char *what)
{
    cJSON *answer = cJSON_CreateObject();

    if (what != NULL)
        cJSON_AddStringToObject(answer, "ok", what);
    else
        cJSON_AddNullToObject(answer, "ok");
    return answer;
}

static const char *reason_of(enum hf_loss loss)
{
    static const char *const words[] = {"",          "expired", "taken", "broken", "unreachable",
                                        "forgotten", "closed"};

    return words[loss];
}

static cJSON *answered(enum hf_status status, const struct hf_error *err, enum hf_loss loss)
{
    static const char *const names[] = {
        "",           "Busy",   "Lost",    "Stale",       "Cancelled", "Unknown", "Unreachable",
        "Quarantine", "Denied", "Invalid", "Unsupported", "Corrupt",   "NoMemory"};
    cJSON *answer;

    if (status == HF_OK)
        return fine();
    answer = cJSON_CreateObject();
    cJSON_AddStringToObject(answer, "error", names[status]);
    cJSON_AddStringToObject(answer, "text", err->text);
    cJSON_AddStringToObject(answer, "reason", reason_of(status == HF_LOST ? loss : HF_LOSS_NONE));
    cJSON_AddNumberToObject(answer, "retry_after_ms", (double)err->retry_after_ms);
    cJSON_AddNumberToObject(answer, "at", now_ms());
    return answer;
}

#endif /* HF_TESTS_BINDINGS_DRIVERS_ANSWERS_H */
