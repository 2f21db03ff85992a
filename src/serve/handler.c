/* handler.c - what the handlers of locks have in common. */
#include "serve/handler.h"

#include "serve/answer.h"

#include "base/base.h"
#include "core/lease.h"

#include <inttypes.h>
#include <stdio.h>

bool handler_body(struct exchange *x, struct body *out, unsigned need)
{
    static const char *const fields[] = {"name", "owner", "token", "ttl_ms", "wait_ms", "label"};
    const char *why;

    if (!body_parse(x->request.body, x->request.body_len, out, &why)) {
        serve_refuse(x, 400, HF_INVALID, "%s", why);
        return false;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if ((need & ~out->given & 1u << i) != 0) {
            serve_refuse(x, 400, HF_INVALID, "the field %s is missing", fields[i]);
            return false;
        }
    return serve_may(x, RIGHT_LOCK, out->name);
}

bool handler_ttl_allowed(struct exchange *x, uint32_t ttl_ms)
{
    char most[32];

    if (ttl_ms <= x->serve->options.max_ttl_ms)
        return true;
    serve_refuse(x, 400, HF_INVALID, "a ttl is at most %s here",
                 hf__format_duration(most, sizeof most, x->serve->options.max_ttl_ms));
    return false;
}

static void add_number(struct text *out, const char *key, bool known, int64_t value)
{
    if (known)
        text_printf(out, ", \"%s\": %" PRId64, key, value);
}

static bool describe(const struct hf_lock_info *info, void *data)
{
    struct text *out = data;

    if (info->held && info->label[0] != '\0') {
        text_printf(out, ", \"holder\": ");
        text_json(out, info->label);
    }
    if (info->held && info->token != 0)
        text_printf(out, ", \"token\": \"%" PRIu64 "\"", info->token);
    add_number(out, "age_ms", info->held && info->age_ms >= 0, info->age_ms);
    add_number(out, "remaining_ms", info->held && info->remaining_ms >= 0, info->remaining_ms);
    add_number(out, "waiters", true, (int64_t)info->waiters);
    return false;
}

void handler_busy(struct exchange *x, const char *name, const struct hf_error *err)
{
    struct text more = {0};
    struct hf_error none;

    if (hf_inspect(x->serve->store, name, describe, &more, &none) != HF_OK)
        text_clear(&more);
    answer_fail(x, err, &more);
    text_release(&more);
}

void handler_label(char out[HF_LABEL_MAX + 1], const char *name, const char *label)
{
    char both[HF_LABEL_MAX + 128];

    (void)snprintf(both, sizeof both, "%s%s%s", name, label[0] != '\0' ? "/" : "", label);
    hf__copy_printable(out, HF_LABEL_MAX + 1, both);
}

int64_t handler_after_ms(int64_t read_at_ns, int64_t sent_at_ns)
{
    return sent_at_ns > read_at_ns ? (sent_at_ns - read_at_ns) / HF__NS_PER_MS : 0;
}

int64_t handler_valid_ms(int64_t after_ms, int64_t left_ms, uint32_t ttl_ms)
{
    int64_t drift_ms = (hf__drift_ns(ttl_ms) + HF__NS_PER_MS - 1) / HF__NS_PER_MS;
    int64_t valid_ms = after_ms - (after_ms + 99) / 100 + left_ms - drift_ms;

    return valid_ms > 0 ? valid_ms : 0;
}
