/* fence_text.c - the mark of a fenced key as a text. */
#include "core/fence_text.h"
#include "base/base.h"
#include "core/fence.h"

#include <string.h>

/* A text that grows, and is cut where it ends. */
struct text {
    char *data;
    size_t len;
    size_t size;
};

static void add(struct text *text, const char *more, size_t len)
{
    size_t room = text->size - 1 - text->len;

    if (len > room)
        len = room;
    memcpy(text->data + text->len, more, len);
    text->len += len;
    text->data[text->len] = '\0';
}

static void add_string(struct text *text, const char *string)
{
    add(text, string, strlen(string));
}

static void add_number(struct text *text, uint64_t number)
{
    char digits[21];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    add(text, digits + at, sizeof digits - at);
}

static void add_time(struct text *text, int64_t us)
{
    add_number(text, us > 0 ? (uint64_t)us : 0);
}

/* The number before the next space; *at is then behind it. */
static bool take_number(const char **at, uint64_t *out)
{
    char digits[24];
    size_t len = strcspn(*at, " \n");

    if (len == 0 || len >= sizeof digits || (*at)[len] != ' ')
        return false;
    memcpy(digits, *at, len);
    digits[len] = '\0';
    *at += len + 1;
    return hf__parse_u64(digits, out);
}

/* *resets: the lines below the first. */
static bool parse(const char *text, struct hf_fence_mark *mark, const char **resets)
{
    uint64_t version;
    uint64_t admitted_us;
    size_t len;

    if (!take_number(&text, &version) || version != 1 || !take_number(&text, &mark->token) ||
        mark->token > HF_FENCE_TOKEN_MAX || !take_number(&text, &admitted_us) ||
        admitted_us > INT64_MAX)
        return false;
    len = strcspn(text, "\n");
    if (len > HF_FENCE_ISSUER_MAX || text[len] != '\n')
        return false;
    memcpy(mark->issuer, text, len);
    mark->issuer[len] = '\0';
    mark->admitted_us = (int64_t)admitted_us;
    *resets = text + len + 1;
    return true;
}

static void begin(struct text *text, const struct hf_fence_mark *mark)
{
    add_string(text, "1 ");
    add_number(text, mark->token);
    add_string(text, " ");
    add_time(text, mark->admitted_us);
    add_string(text, " ");
    add_string(text, mark->issuer);
    add_string(text, "\n");
}

static void add_reset(struct text *text, const struct hf_fence_mark *from,
                      const struct hf_fence_mark *to, const char *reason)
{
    add_time(text, to->admitted_us);
    add_string(text, " ");
    add_number(text, from->token);
    add_string(text, " ");
    add_string(text, from->issuer);
    add_string(text, " -> ");
    add_number(text, to->token);
    add_string(text, " ");
    add_string(text, to->issuer);
    add_string(text, ": ");
    add_string(text, reason);
    add_string(text, "\n");
}

/* Whole lines, `count` at the most. */
static void add_lines(struct text *text, const char *lines, size_t count)
{
    size_t len = 0;

    while (count-- > 0 && lines[len] != '\0') {
        size_t line = strcspn(lines + len, "\n");

        if (line >= HF__FENCE_RESET_SIZE || lines[len + line] != '\n')
            break;
        len += line + 1;
    }
    add(text, lines, len);
}

static void reset(const struct hf_fence_request *request, const struct hf_fence_mark *from,
                  const char *resets, int64_t now_us, struct text *text)
{
    struct hf_fence_mark to = {.token = request->token, .admitted_us = now_us};

    hf__fence_issuer(to.issuer, request->issuer);
    begin(text, &to);
    add_reset(text, from, &to, request->reason);
    add_lines(text, resets, HF__FENCE_RESETS_MAX - 1);
}

enum hf_status hf__fence_judge(const struct hf_fence_request *request, const char *text,
                               int64_t now_us, struct hf_fence_mark *mark,
                               char out[HF__FENCE_TEXT_SIZE])
{
    struct text made = {.data = out, .size = HF__FENCE_TEXT_SIZE};
    char issuer[HF_FENCE_ISSUER_MAX + 1];
    const char *resets = "";
    struct hf_fence_mark next;

    out[0] = '\0';
    *mark = (struct hf_fence_mark){.token = 0};
    if (text != NULL && !parse(text, mark, &resets)) {
        *mark = (struct hf_fence_mark){.token = 0};
        if (request->op != HF_FENCE_RESET_KEY)
            return HF_CORRUPT;
    }
    if (request->op == HF_FENCE_READ_KEY)
        return HF_OK;
    if (request->op == HF_FENCE_RESET_KEY) {
        reset(request, mark, resets, now_us, &made);
        return HF_OK;
    }
    next = *mark;
    hf__fence_settle(&next, request->issuer, request->issuer_url, issuer);
    switch (hf_fence_decide(&next, request->token, issuer, now_us)) {
    case HF_FENCE_ADMIT:
        return HF_OK;
    case HF_FENCE_RAISE:
        begin(&made, &next);
        add_lines(&made, resets, HF__FENCE_RESETS_MAX);
        return HF_OK;
    case HF_FENCE_STALE:
        return HF_STALE;
    case HF_FENCE_FOREIGN:
    case HF_FENCE_BAD:
        break;
    }
    return HF_INVALID;
}
