/* fact.c - telling facts. */
#include "base/fact.h"

#include "base/base.h"

#include <stdio.h>

static void tell(struct hf__teller *teller, struct hf__topic topic, const char *value,
                 const char *unknown)
{
    const struct hf_fact fact = {.size = sizeof fact,
                                 .key = topic.key,
                                 .value = value,
                                 .unit = topic.unit != NULL ? topic.unit : "",
                                 .source = topic.source,
                                 .where = teller->where != NULL ? teller->where : "",
                                 .unknown = unknown};

    if (!teller->stopped && !teller->fn(&fact, teller->data))
        teller->stopped = true;
}

void hf__tell(struct hf__teller *teller, struct hf__topic topic, const char *format, ...)
{
    char raw[HF__FACT_VALUE_MAX];
    char value[HF__FACT_VALUE_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    hf__copy_printable(value, sizeof value, raw);
    tell(teller, topic, value, NULL);
}

void hf__tell_unknown(struct hf__teller *teller, struct hf__topic topic, const char *why)
{
    char shown[HF__FACT_VALUE_MAX];

    hf__copy_printable(shown, sizeof shown, why != NULL && why[0] != '\0' ? why : "no answer");
    tell(teller, topic, "", shown);
}
