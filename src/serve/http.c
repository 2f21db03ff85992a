/* http.c - requests of HTTP/1.1, read strictly. */
#include "serve/http.h"

#include "base/base.h"

#include <string.h>
#include <strings.h>

enum { LENGTH_DIGITS_MAX = 9 }; /* of a Content-Length; more is too large in any case */

static const char token_chars[] = "!#$%&'*+-.^_`|~0123456789"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static bool refuse(struct http_refusal *why, int code, const char *detail)
{
    *why = (struct http_refusal){.code = code, .detail = detail};
    return false;
}

/* The bytes of the head, 0 if it is not complete. False: what is there cannot become a head. */
static bool find_end(const char *data, size_t len, size_t *head_len, struct http_refusal *why)
{
    size_t line = 0; /* where the present line begins */

    *head_len = 0;
    for (size_t i = 0; i < len; i++) {
        if (i == HTTP_HEAD_MAX)
            return refuse(why, 413, "the head of a request has at most 8192 bytes");
        if (data[i] == '\0')
            return refuse(why, 400, "a request has no NUL in its head");
        if (data[i] == '\n' && (i == 0 || data[i - 1] != '\r'))
            return refuse(why, 400, "lines end with CR and LF");
        if (data[i] == '\r' && i + 1 < len && data[i + 1] != '\n')
            return refuse(why, 400, "a CR is followed by an LF");
        if (data[i] != '\n')
            continue;
        if (i == line + 1) {
            if (line == 0)
                return refuse(why, 400, "a request begins with its method");
            *head_len = i + 1;
            return true;
        }
        line = i + 1;
    }
    return true;
}

/* The line at *at without its CRLF; *at moves on. */
static char *take_line(char **at)
{
    char *line = *at;
    char *end = strchr(line, '\r');

    *end = '\0';
    *at = end + 2;
    return line;
}

static bool target_valid(const char *target)
{
    if (target[0] != '/')
        return false; /* an absolute URI, an authority, "*" */
    for (const char *c = target; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~' || *c == '#' || (c[0] == '%' && c[1] == '0' && c[2] == '0'))
            return false;
    return true;
}

static bool parse_request_line(char *line, struct http_request *out, struct http_refusal *why)
{
    size_t method_len = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    char *target = line + method_len + 1;
    char *version;

    if (method_len == 0 || line[method_len] != ' ')
        return refuse(why, 400, "a request begins with its method and one space");
    line[method_len] = '\0';
    version = strchr(target, ' ');
    if (version == NULL)
        return refuse(why, 400, "a request line has a method, a path and a version");
    *version++ = '\0';
    out->version_1_0 = strcmp(version, "HTTP/1.0") == 0;
    if (!out->version_1_0 && strcmp(version, "HTTP/1.1") != 0)
        return refuse(why, 400, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    if (!target_valid(target))
        return refuse(why, 400, "a target begins with \"/\" and has neither %00 nor a fragment");
    out->method = strcmp(line, "GET") == 0    ? HTTP_GET
                  : strcmp(line, "POST") == 0 ? HTTP_POST
                  : strcmp(line, "HEAD") == 0 ? HTTP_HEAD
                                              : HTTP_OTHER;
    out->path = target;
    out->query = strchr(target, '?');
    if (out->query != NULL)
        *out->query++ = '\0';
    else
        out->query = target + strlen(target);
    return true;
}

/* Whether word is an item of a list with commas, or what an item begins with. */
static bool list_has(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *item = list; *item != '\0';) {
        size_t item_len;

        item += strspn(item, " \t,;");
        item_len = strcspn(item, " \t,;");
        if (item_len == len && strncasecmp(item, word, len) == 0)
            return true;
        item += item_len;
    }
    return false;
}

static bool parse_length(const char *value, struct http_request *out, struct http_refusal *why)
{
    uint64_t length = 0;

    if (out->has_length)
        return refuse(why, 400, "there are two lengths");
    if (!hf__parse_u64(value, &length) && (value[0] == '\0' || value[strspn(value, "0123456789")]))
        return refuse(why, 400, "a Content-Length has digits only");
    if (strlen(value) > LENGTH_DIGITS_MAX || length > HTTP_BODY_MAX)
        return refuse(why, 413, "a body has at most 16384 bytes");
    out->has_length = true;
    out->body_len = (size_t)length;
    return true;
}

static bool parse_connection(const char *value, struct http_request *out, struct http_refusal *why)
{
    if (list_has(value, "upgrade"))
        return refuse(why, 400, "there is nothing to upgrade to");
    if (list_has(value, "close"))
        out->close = true;
    else if (list_has(value, "keep-alive"))
        out->close = false;
    return true;
}

/* A header that may come once. */
static bool keep_one(char **place, char *value, struct http_refusal *why)
{
    if (*place != NULL)
        return refuse(why, 400, "a header that has one value comes twice");
    *place = value;
    return true;
}

static bool take_header(const char *name, char *value, struct http_request *out,
                        struct http_refusal *why)
{
    if (strcasecmp(name, "Host") == 0)
        return keep_one(&out->host, value, why);
    if (strcasecmp(name, "Content-Length") == 0)
        return parse_length(value, out, why);
    if (strcasecmp(name, "Content-Type") == 0)
        return keep_one(&out->content_type, value, why);
    if (strcasecmp(name, "Authorization") == 0)
        return keep_one(&out->authorization, value, why);
    if (strcasecmp(name, "Connection") == 0)
        return parse_connection(value, out, why);
    if (strcasecmp(name, "Transfer-Encoding") == 0)
        return refuse(why, 400, "a body has a Content-Length and no Transfer-Encoding");
    if (strcasecmp(name, "Upgrade") == 0)
        return refuse(why, 400, "there is nothing to upgrade to");
    if (strcasecmp(name, "Expect") == 0) {
        out->expects_continue = strcasecmp(value, "100-continue") == 0;
        return out->expects_continue || refuse(why, 400, "only 100-continue can be expected");
    }
    if (strcasecmp(name, "Accept") == 0 && list_has(value, "application/x-ndjson"))
        out->streams = true;
    return true;
}

static bool parse_header(char *line, struct http_request *out, struct http_refusal *why)
{
    size_t name_len = strspn(line, token_chars);
    char *value = line + name_len + 1;
    char *end;

    if (name_len == 0 || line[name_len] != ':')
        return refuse(why, 400, "a header is a name, a colon right behind it, and a value");
    line[name_len] = '\0';
    value += strspn(value, " \t");
    for (end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t'); end--)
        ;
    *end = '\0';
    for (const char *c = value; *c != '\0'; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return refuse(why, 400, "a header has no control characters");
    return take_header(line, value, out, why);
}

static bool parse_head(char *data, struct http_request *out, struct http_refusal *why)
{
    char *at = data;
    int lines = 0;

    if (!parse_request_line(take_line(&at), out, why))
        return false;
    out->close = out->version_1_0;
    for (;;) {
        char *line = take_line(&at);

        if (line[0] == '\0')
            break;
        if (++lines > HTTP_HEADERS_MAX)
            return refuse(why, 413, "a request has at most 64 headers");
        if (!parse_header(line, out, why))
            return false;
    }
    if (out->host == NULL)
        return refuse(why, 400, "a request names its Host, once");
    if (out->method == HTTP_POST && !out->has_length)
        return refuse(why, 411, "a POST has a Content-Length");
    return true;
}

enum http_parsed http_parse(char *data, size_t len, struct http_request *out,
                            struct http_refusal *why)
{
    size_t head_len;

    if (!find_end(data, len, &head_len, why))
        return HTTP_BAD;
    if (head_len == 0)
        return HTTP_MORE;
    *out = (struct http_request){.head_len = head_len, .body = data + head_len};
    return parse_head(data, out, why) ? HTTP_DONE : HTTP_BAD;
}

/* Decodes %XX and '+' in place. False: a bad escape, a NUL, or no UTF-8. */
static bool decode(char *text)
{
    char *out = text;

    for (const char *in = text; *in != '\0'; in++) {
        unsigned char byte = (unsigned char)*in;

        if (*in == '+') {
            byte = ' ';
        } else if (*in == '%') {
            char digits[3] = {in[1], in[1] != '\0' ? in[2] : '\0', '\0'};

            if (!hf__hex_decode(&byte, 1, digits) || byte == 0)
                return false;
            in += 2;
        }
        *out++ = (char)byte;
    }
    *out = '\0';
    return hf__utf8_valid(text);
}

int http_parameters(char *query, struct http_parameter out[HTTP_PARAMETERS_MAX])
{
    int count = 0;
    char *rest = query;

    while (rest != NULL && *rest != '\0') {
        char *item = strsep(&rest, "&");
        char *value = strchr(item, '=');

        if (item[0] == '\0')
            continue;
        if (count == HTTP_PARAMETERS_MAX)
            return -1;
        if (value != NULL)
            *value++ = '\0';
        else
            value = item + strlen(item);
        if (!decode(item) || !decode(value))
            return -1;
        for (int i = 0; i < count; i++)
            if (strcmp(out[i].name, item) == 0)
                return -1;
        out[count++] = (struct http_parameter){.name = item, .value = value};
    }
    return count;
}

const char *http_reason(int code)
{
    static const struct {
        int code;
        const char *text;
    } known[] = {{200, "OK"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {410, "Gone"},
                 {411, "Length Required"},
                 {413, "Content Too Large"},
                 {423, "Locked"},
                 {429, "Too Many Requests"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return known[i].text;
    return "Unknown";
}
