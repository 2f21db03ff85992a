/* text.c - text that grows. */
#include "serve/text.h"

#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_FIRST = 512 }; /* bytes to begin with */

/* False: no memory. */
static bool make_room(struct text *text, size_t more)
{
    size_t size = text->size != 0 ? text->size : TEXT_FIRST;
    char *data;

    if (text->failed)
        return false;
    while (size - text->len < more)
        size *= 2;
    if (size == text->size)
        return true;
    data = realloc(text->data, size);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->size = size;
    return true;
}

void text_add(struct text *text, const void *data, size_t len)
{
    if (len == 0 || !make_room(text, len))
        return;
    memcpy(text->data + text->len, data, len);
    text->len += len;
}

void text_printf(struct text *text, const char *format, ...)
{
    char some[512];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(some, sizeof some, format, args);
    va_end(args);
    if (len < 0 || (size_t)len < sizeof some) {
        text_add(text, some, len > 0 ? (size_t)len : 0);
    } else if (make_room(text, (size_t)len + 1)) {
        va_start(args, format);
        (void)vsnprintf(text->data + text->len, (size_t)len + 1, format, args);
        va_end(args);
        text->len += (size_t)len;
    }
}

void text_json(struct text *text, const char *string)
{
    char one[CLI_JSON_CHAR_SIZE];

    text_add(text, "\"", 1);
    while (*string != '\0') {
        size_t plain = strspn(string, " !#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "[]^_`abcdefghijklmnopqrstuvwxyz{|}~");

        text_add(text, string, plain);
        string += plain;
        if (*string != '\0')
            text_add(text, one, cli_json_char(one, &string));
    }
    text_add(text, "\"", 1);
}

void text_clear(struct text *text)
{
    text->len = 0;
    text->failed = false;
}

void text_release(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}
