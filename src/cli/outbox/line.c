/* line.c - a message as a line of JSON, for a command. */
#include "cli/outbox/relay.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_text(const char *bytes, size_t len)
{
    unsigned long point;

    if (memchr(bytes, '\0', len) != NULL)
        return false;
    for (const char *at = bytes; at < bytes + len;) {
        size_t step = (unsigned char)*at < 0x80 ? 1 : hf__utf8_read(at, &point);

        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

/* Text as it is: only what JSON cannot have is escaped. */
static void put_text(FILE *out, const char *text, size_t len)
{
    size_t plain = 0;

    fputc('"', out);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= ' ' && c != '"' && c != '\\' && c != 0x7f)
            continue;
        fwrite(text + plain, 1, i - plain, out);
        plain = i + 1;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else
            fprintf(out, "\\u%04x", c);
    }
    fwrite(text + plain, 1, len - plain, out);
    fputc('"', out);
}

static void put_base64(FILE *out, const char *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    fputc('"', out);
    for (size_t i = 0; i < len; i += 3) {
        unsigned char in[3] = {0};
        size_t have = len - i < 3 ? len - i : 3;

        memcpy(in, bytes + i, have);
        fputc(digits[in[0] >> 2], out);
        fputc(digits[(in[0] & 3) << 4 | in[1] >> 4], out);
        fputc(have > 1 ? digits[(in[1] & 15) << 2 | in[2] >> 6] : '=', out);
        fputc(have > 2 ? digits[in[2] & 63] : '=', out);
    }
    fputc('"', out);
}

/* Some databases hold text that is not UTF-8: that is not passed on as it is. */
static void put_string(FILE *out, const char *text)
{
    size_t len = strlen(text);

    if (is_text(text, len))
        put_text(out, text, len);
    else
        cli_json_string(out, text);
}

/* A JSON object, in one line. MariaDB lets any letter follow a backslash, JSON only a few: before
 * others the backslash stands for itself. */
static void put_headers(FILE *out, const char *object)
{
    const char *slash;

    for (; (slash = strchr(object, '\\')) != NULL && slash[1] != '\0'; object = slash + 2) {
        fwrite(object, 1, (size_t)(slash - object), out);
        fputs(strchr("\"\\/bfnrtu", slash[1]) != NULL ? "\\" : "\\\\", out);
        fputc(slash[1], out);
    }
    fputs(object, out);
}

void outbox_line(FILE *out, const struct hf__sender_message *message)
{
    fprintf(out, "{\"uid\":\"%s\",\"topic\":", message->uid);
    put_string(out, message->topic);
    fputs(",\"key\":", out);
    put_string(out, message->key);
    fprintf(out,
            ",\"token\":%" PRIu64 ",\"attempt\":%u,\"created\":\"%s\",\"headers\":", message->token,
            message->attempt, message->created);
    put_headers(out, message->headers);
    fputc(',', out);
    if (is_text(message->payload, message->payload_len)) {
        fputs("\"payload\":", out);
        put_text(out, message->payload, message->payload_len);
    } else {
        fputs("\"payload_base64\":", out);
        put_base64(out, message->payload, message->payload_len);
    }
    fputs("}\n", out);
}
