/* error.c - filling the caller's error. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum hf_status hf__vfail(struct hf_error *err, enum hf_status code, const char *format,
                         va_list args)
{
    if (err != NULL) {
        err->code = code;
        err->retry_after_ms = 0;
        (void)vsnprintf(err->text, sizeof err->text, format, args);
    }
    return code;
}

enum hf_status hf__fail(struct hf_error *err, enum hf_status code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)hf__vfail(err, code, format, args);
    va_end(args);
    return code;
}

enum hf_status hf__nomem(struct hf_error *err)
{
    return hf__fail(err, HF_NOMEM, "out of memory");
}

enum hf_status hf__ok(struct hf_error *err)
{
    if (err != NULL) {
        err->code = HF_OK;
        err->retry_after_ms = 0;
        err->text[0] = '\0';
    }
    return HF_OK;
}

const char *hf_status_text(enum hf_status status)
{
    switch (status) {
#define X(symbol, value, text)                                                                     \
    case symbol:                                                                                   \
        return text;
        HF_STATUS_MAP(X)
#undef X
    }
    return "no such status";
}

const char *hf_status_name(enum hf_status status)
{
    switch (status) {
#define X(symbol, value, text)                                                                     \
    case symbol:                                                                                   \
        return #symbol;
        HF_STATUS_MAP(X)
#undef X
    }
    return "HF_?";
}

const char *hf_loss_text(enum hf_loss loss)
{
    switch (loss) {
#define X(symbol, value, text)                                                                     \
    case symbol:                                                                                   \
        return text;
        HF_LOSS_MAP(X)
#undef X
    }
    return "no such reason";
}
