/* facts.c - facts that are kept, and judged. */
#include "cli/audit/audit.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64, FINDINGS_PER_FACT = 2, FINDINGS_BESIDES = 64 };

static bool grow(struct audit_facts *facts)
{
    size_t capacity = facts->capacity > 0 ? 2 * facts->capacity : FIRST_CAPACITY;
    struct hf_fact *more;

    if (facts->count < facts->capacity)
        return true;
    if (capacity > HF__AUDIT_FACTS_MAX)
        return false;
    more = realloc(facts->items, capacity * sizeof *more);
    if (more == NULL)
        return false;
    facts->items = more;
    facts->capacity = capacity;
    return true;
}

static const char *copy(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *here = *at;

    memcpy(here, text, size);
    *at += size;
    return here;
}

/* The strings of a fact lie one behind the other; the key comes first, and is what is freed. */
bool audit_facts_add(const struct hf_fact *fact, void *data)
{
    struct audit_facts *facts = data;
    const char *unknown = fact->unknown != NULL ? fact->unknown : "";
    size_t size = strlen(fact->key) + strlen(fact->value) + strlen(fact->unit) +
                  strlen(fact->source) + strlen(fact->where) + strlen(unknown) + 6;
    struct hf_fact *own;
    char *at = grow(facts) ? malloc(size) : NULL;

    if (at == NULL) {
        facts->cut = true;
        return false;
    }
    own = &facts->items[facts->count++];
    *own = (struct hf_fact){.size = sizeof *own};
    own->key = copy(&at, fact->key);
    own->value = copy(&at, fact->value);
    own->unit = copy(&at, fact->unit);
    own->source = copy(&at, fact->source);
    own->where = copy(&at, fact->where);
    own->unknown = fact->unknown != NULL ? copy(&at, unknown) : NULL;
    return true;
}

void audit_facts_clear(struct audit_facts *facts)
{
    for (size_t i = 0; i < facts->count; i++)
        free((char *)facts->items[i].key);
    free(facts->items);
    *facts = (struct audit_facts){.count = 0};
}

bool audit_judge(const struct audit_facts *facts, struct audit_findings *out)
{
    const struct hf__audit_facts all = {.items = facts->items, .count = facts->count};
    size_t max = facts->count * FINDINGS_PER_FACT + FINDINGS_BESIDES;

    out->items = calloc(max, sizeof *out->items);
    if (out->items == NULL || facts->cut)
        return false;
    out->count = hf__audit_judge(&all, out->items, max);
    return true;
}

void audit_findings_clear(struct audit_findings *findings)
{
    free(findings->items);
    *findings = (struct audit_findings){.count = 0};
}
