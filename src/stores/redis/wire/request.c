/* request.c - writing commands the way Redis reads them. */
#include "stores/redis/wire/request.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 1024

void rd_request_release(struct rd_request *request)
{
    rd_request_clear(request);
    free(request->data);
    *request = (struct rd_request){0};
}

void rd_request_clear(struct rd_request *request)
{
    if (request->len > 0)
        explicit_bzero(request->data, request->len);
    request->len = 0;
    request->failed = false;
}

/* Grows by copying into fresh memory, so that no old copy of a password stays behind. */
static bool reserve(struct rd_request *request, size_t more)
{
    size_t capacity = request->capacity > 0 ? request->capacity : FIRST_CAPACITY;
    char *data;

    if (request->failed)
        return false;
    if (more <= request->capacity - request->len)
        return true;
    while (capacity - request->len < more && capacity < RD_REQUEST_MAX_BYTES)
        capacity *= 2;
    data = capacity - request->len >= more ? malloc(capacity) : NULL;
    if (data == NULL) {
        request->failed = true;
        return false;
    }
    if (request->len > 0) {
        memcpy(data, request->data, request->len);
        explicit_bzero(request->data, request->len);
    }
    free(request->data);
    request->data = data;
    request->capacity = capacity;
    return true;
}

void rd_request_raw(struct rd_request *request, const void *data, size_t len)
{
    if (!reserve(request, len))
        return;
    memcpy(request->data + request->len, data, len);
    request->len += len;
}

/* "*3\r\n" or "$5\r\n"; printf would be the slowest part of a request. */
static void append_count(struct rd_request *request, char kind, size_t count)
{
    char text[24];
    size_t at = sizeof text;

    text[--at] = '\n';
    text[--at] = '\r';
    do {
        text[--at] = (char)('0' + count % 10);
        count /= 10;
    } while (count > 0);
    text[--at] = kind;
    rd_request_raw(request, text + at, sizeof text - at);
}

void rd_request_begin(struct rd_request *request, size_t count)
{
    append_count(request, '*', count);
}

void rd_request_word(struct rd_request *request, const char *word)
{
    rd_request_bytes(request, word, strlen(word));
}

void rd_request_bytes(struct rd_request *request, const void *data, size_t len)
{
    append_count(request, '$', len);
    rd_request_raw(request, data, len);
    rd_request_raw(request, "\r\n", 2);
}

void rd_request_number(struct rd_request *request, int64_t number)
{
    char text[24];
    size_t at = sizeof text - 1;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

    text[at] = '\0';
    do {
        text[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        text[--at] = '-';
    rd_request_word(request, text + at);
}

void rd_request_command(struct rd_request *request, const char *const *words)
{
    size_t count = 0;

    while (words[count] != NULL)
        count++;
    rd_request_begin(request, count);
    for (size_t i = 0; i < count; i++)
        rd_request_word(request, words[i]);
}
