/* answer.c - how statuses become answers: the one table of codes, errors, heads. */
#include "serve/answer.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { RETRY_MS = 1000 }; /* when a store that is away may be asked again */

int answer_code(enum hf_status status)
{
    switch (status) {
    case HF_OK:
        return 200;
    case HF_INVALID:
        return 400;
    case HF_DENIED:
        return 403;
    case HF_STALE:
        return 409;
    case HF_LOST:
        return 410;
    case HF_BUSY:
        return 423;
    case HF_NOMEM:
    case HF_CORRUPT:
        return 500;
    case HF_UNSUPPORTED:
        return 501;
    case HF_CANCELLED:
    case HF_UNREACHABLE:
    case HF_QUARANTINE:
        return 503;
    case HF_UNKNOWN:
        break;
    }
    return 504;
}

/* An error as the answer's body. */
static void put_problem(struct exchange *x, const struct hf_error *err, const struct text *more)
{
    struct answer *r = &x->answer;

    text_clear(&r->body);
    r->status = err->code;
    r->type = "application/problem+json";
    text_printf(&r->body, "{\"status\": \"%s\", \"detail\": ", hf_status_name(err->code));
    text_json(&r->body, err->text[0] != '\0' ? err->text : hf_status_text(err->code));
    if (err->retry_after_ms > 0) {
        text_printf(&r->body, ", \"retry_after_ms\": %" PRId64, err->retry_after_ms);
        text_printf(&r->headers, "Retry-After: %" PRId64 "\r\n",
                    (err->retry_after_ms + 999) / 1000);
    }
    if (more != NULL)
        text_add(&r->body, more->data, more->len);
    text_add(&r->body, "}\n", 2);
}

void answer_fail(struct exchange *x, const struct hf_error *err, const struct text *more)
{
    struct hf_error said = *err;

    if ((said.code == HF_UNREACHABLE || said.code == HF_QUARANTINE) && said.retry_after_ms <= 0)
        said.retry_after_ms = RETRY_MS;
    x->answer.code = answer_code(said.code);
    put_problem(x, &said, more);
}

void serve_fail(struct exchange *x, const struct hf_error *err)
{
    answer_fail(x, err, NULL);
}

void serve_refuse(struct exchange *x, int code, enum hf_status status, const char *format, ...)
{
    struct hf_error err;
    va_list args;

    va_start(args, format);
    (void)hf__vfail(&err, status, format, args);
    va_end(args);
    if (code == 429)
        err.retry_after_ms = RETRY_MS;
    x->answer.code = code;
    put_problem(x, &err, NULL);
}

void answer_ok(struct exchange *x, const char *format, ...)
{
    char members[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(members, sizeof members, format, args);
    va_end(args);
    x->answer.code = 200;
    x->answer.status = HF_OK;
    text_printf(&x->answer.body, "{%s}\n", members);
    explicit_bzero(members, sizeof members); /* an owner may be among them */
}

void answer_common(struct text *out, const char *status)
{
    text_printf(out,
                "Holdfast-Status: %s\r\nCache-Control: no-store\r\n"
                "X-Content-Type-Options: nosniff\r\n",
                status);
}

void answer_write(const struct exchange *x, struct text *out)
{
    const struct answer *r = &x->answer;

    text_printf(out, "HTTP/1.1 %d %s\r\n", r->code, http_reason(r->code));
    answer_common(out, hf_status_name(r->status));
    text_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n%s",
                r->type != NULL ? r->type : "application/json", r->body.len,
                r->close                 ? "Connection: close\r\n"
                : x->request.version_1_0 ? "Connection: keep-alive\r\n"
                                         : "");
    text_add(out, r->headers.data, r->headers.len);
    text_add(out, "\r\n", 2);
    if (x->request.method != HTTP_HEAD) /* whose answer ends here: more would be the next one's */
        text_add(out, r->body.data, r->body.len);
}
