/* audit.c - what facts about a store mean for a lock: every rule is held against every fact. */
#include "core/audit_rules.h"

#include "base/base.h"

#include <string.h>

/* "redis." of "redis.role": the facts of one kind of store are told together. */
static size_t family_len(const char *key)
{
    return strcspn(key, ".") + 1;
}

static bool key_fits(const char *pattern, const char *key)
{
    size_t len = strlen(pattern);

    if (len > 0 && pattern[len - 1] == '*')
        return strncmp(pattern, key, len - 1) == 0;
    return strcmp(pattern, key) == 0;
}

const struct hf_fact *hf__audit_beside(const struct hf__audit_facts *facts,
                                       const struct hf_fact *fact, const char *key)
{
    const struct hf_fact *general = NULL;

    for (size_t i = 0; i < facts->count; i++) {
        const struct hf_fact *other = &facts->items[i];

        if (other->unknown != NULL || strcmp(other->key, key) != 0)
            continue;
        if (strcmp(other->where, fact->where) == 0)
            return other;
        if (other->where[0] == '\0')
            general = other;
    }
    return general;
}

int64_t hf__audit_number(const struct hf_fact *fact, int64_t otherwise)
{
    bool negative = fact != NULL && fact->value[0] == '-';
    uint64_t number;

    if (fact == NULL || !hf__parse_u64(fact->value + (negative ? 1 : 0), &number) ||
        number > INT64_MAX)
        return otherwise;
    return negative ? -(int64_t)number : (int64_t)number;
}

/* The findings that are made. */
struct findings {
    struct hf__finding *out;
    size_t count;
    size_t max;
};

/* Keeps the order: the gravest first, then as the table and the facts have it. */
static void add(struct findings *findings, struct hf__finding finding)
{
    size_t at = findings->count;

    if (findings->count == findings->max)
        return;
    while (at > 0 && findings->out[at - 1].level > finding.level)
        at--;
    memmove(&findings->out[at + 1], &findings->out[at], (findings->count - at) * sizeof finding);
    findings->out[at] = finding;
    findings->count++;
}

static void hold_against(const struct hf__audit_rule *rule, const struct hf__audit_facts *facts,
                         const struct hf_fact *fact, struct findings *findings)
{
    struct hf__finding finding = {
        .rule = rule, .level = rule->level, .fact = fact, .where = fact->where};
    const struct hf_fact *next = fact + 1 < facts->items + facts->count ? fact + 1 : NULL;

    if (rule->change == NULL && next != NULL && strcmp(next->key, "fence.remedy") == 0)
        finding.remedy = next;
    if (fact->unknown != NULL)
        finding.level = HF__AUDIT_UNCHECKED;
    else if (rule->deserved != NULL && !rule->deserved(facts, fact))
        return;
    add(findings, finding);
}

/* One fact that could not be looked at is one finding, however many rules would have looked. */
static bool said_already(const struct findings *findings, const struct hf_fact *fact)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->out[i].fact == fact && findings->out[i].level == HF__AUDIT_UNCHECKED)
            return true;
    return false;
}

/* The first of what one server told of itself. Searched backwards: a server tells all in one go. */
static bool is_first_of_its_kind(const struct hf__audit_facts *facts, size_t at)
{
    const struct hf_fact *fact = &facts->items[at];

    for (size_t i = at; i > 0; i--)
        if (strcmp(facts->items[i - 1].where, fact->where) == 0 &&
            strncmp(facts->items[i - 1].key, fact->key, family_len(fact->key)) == 0)
            return false;
    return true;
}

static bool was_told(const struct hf__audit_facts *facts, const char *key, const char *where)
{
    for (size_t i = 0; i < facts->count; i++)
        if (strcmp(facts->items[i].key, key) == 0 && strcmp(facts->items[i].where, where) == 0)
            return true;
    return false;
}

/* A server that told of itself and left out what decides: an odd version, a gap in its answer. */
static void miss(const struct hf__audit_rule *rule, const struct hf__audit_facts *facts,
                 struct findings *findings)
{
    size_t family = family_len(rule->key);

    for (size_t i = 0; i < facts->count; i++) {
        const struct hf_fact *fact = &facts->items[i];

        if (strncmp(fact->key, rule->key, family) != 0 || !is_first_of_its_kind(facts, i) ||
            was_told(facts, rule->key, fact->where))
            continue;
        add(findings,
            (struct hf__finding){.rule = rule, .level = HF__AUDIT_UNCHECKED, .where = fact->where});
    }
}

static void apply(const struct hf__audit_rule *rule, const struct hf__audit_facts *facts,
                  struct findings *findings)
{
    for (size_t i = 0; i < facts->count; i++) {
        const struct hf_fact *fact = &facts->items[i];

        if (key_fits(rule->key, fact->key) && !said_already(findings, fact))
            hold_against(rule, facts, fact, findings);
    }
    if (rule->decisive && strchr(rule->key, '*') == NULL)
        miss(rule, facts, findings);
}

const struct hf__audit_rule *const hf__audit_tables[] = {hf__audit_client_rules,
                                                         hf__audit_file_rules,
                                                         hf__audit_redis_rules,
                                                         hf__audit_etcd_rules,
                                                         hf__audit_zookeeper_rules,
                                                         hf__audit_postgres_rules,
                                                         NULL};

size_t hf__audit_judge(const struct hf__audit_facts *facts, struct hf__finding *out, size_t max)
{
    struct findings findings = {.out = out, .max = max};

    for (const struct hf__audit_rule *const *table = hf__audit_tables; *table != NULL; table++)
        for (const struct hf__audit_rule *rule = *table; rule->name != NULL; rule++)
            apply(rule, facts, &findings);
    return findings.count;
}

bool hf__audit_counts(const struct hf__finding *finding, enum hf__purpose purpose)
{
    switch (finding->level) {
    case HF__AUDIT_UNFIT:
        return true;
    case HF__AUDIT_RISKY:
        return purpose == HF__FOR_CORRECTNESS;
    case HF__AUDIT_UNCHECKED:
        return finding->rule->decisive &&
               (purpose == HF__FOR_CORRECTNESS || finding->rule->level == HF__AUDIT_UNFIT);
    case HF__AUDIT_ADVICE:
        break;
    }
    return false;
}

enum hf__fitness hf__audit_fitness(const struct hf__finding *findings, size_t count,
                                   enum hf__purpose purpose)
{
    enum hf__fitness fitness = HF__FIT;

    for (size_t i = 0; i < count; i++) {
        if (!hf__audit_counts(&findings[i], purpose))
            continue;
        if (findings[i].level != HF__AUDIT_UNCHECKED)
            return HF__NOT_FIT;
        fitness = HF__NOT_SHOWN;
    }
    return fitness;
}

/* Text that grows up to its end. */
struct line {
    char *out;
    size_t used;
};

static void put(struct line *line, const char *text, size_t len)
{
    size_t room = HF__AUDIT_TEXT_MAX - 1 - line->used;

    if (len > room)
        len = room;
    memcpy(line->out + line->used, text, len);
    line->used += len;
    line->out[line->used] = '\0';
}

static void put_number(struct line *line, int64_t number)
{
    char text[20];
    size_t at = sizeof text;

    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    put(line, text + at, sizeof text - at);
}

/* "1700 MiB". False: it is not a number of bytes, or below 1 MiB, where every byte counts. */
static bool put_bytes(struct line *line, const struct hf_fact *fact)
{
    int64_t mib = hf__audit_number(fact, 0) >> 20;

    if (strcmp(fact->unit, "bytes") != 0 || mib <= 0)
        return false;
    put_number(line, mib < 10240 ? mib : mib >> 10);
    put(line, mib < 10240 ? " MiB" : " GiB", 4);
    return true;
}

/* As people write it: 60s, not 60000 ms. */
static void put_value(struct line *line, const struct hf_fact *fact)
{
    static const struct {
        const char *unit;
        int64_t per_ms; /* of them in a millisecond ... */
        int64_t ms;     /* ... or milliseconds in one */
    } times[] = {{"us", 1000, 1}, {"ms", 1, 1}, {"s", 1, 1000}};
    int64_t number = hf__audit_number(fact, -1);
    char text[32];

    for (size_t i = 0; i < sizeof times / sizeof *times && number >= 0; i++) {
        if (strcmp(fact->unit, times[i].unit) != 0 || number > INT64_MAX / 1000)
            continue;
        (void)hf__format_duration(text, sizeof text, number * times[i].ms / times[i].per_ms);
        put(line, text, strlen(text));
        return;
    }
    if (put_bytes(line, fact))
        return;
    put(line, fact->value, strlen(fact->value));
    if (fact->unit[0] != '\0') {
        put(line, " ", 1);
        put(line, fact->unit, strlen(fact->unit));
    }
}

static void fill_in(struct line *line, const char *sentence, const struct hf_fact *fact)
{
    const char *gap;

    while (fact != NULL && (gap = strstr(sentence, "{}")) != NULL) {
        put(line, sentence, (size_t)(gap - sentence));
        put_value(line, fact);
        sentence = gap + 2;
    }
    put(line, sentence, strlen(sentence));
}

void hf__audit_found(const struct hf__finding *finding, char out[HF__AUDIT_TEXT_MAX])
{
    struct line line = {.out = out};
    const struct hf_fact *fact = finding->fact;

    out[0] = '\0';
    if (finding->level != HF__AUDIT_UNCHECKED) {
        fill_in(&line, finding->rule->found, fact);
        return;
    }
    put(&line, "could not check: ", strlen("could not check: "));
    if (fact != NULL) {
        put(&line, fact->key, strlen(fact->key));
        put(&line, ": ", 2);
        put(&line, fact->unknown, strlen(fact->unknown));
    } else {
        put(&line, finding->rule->key, strlen(finding->rule->key));
        put(&line, ": it was not told", strlen(": it was not told"));
    }
}

void hf__audit_change(const struct hf__finding *finding, char out[HF__AUDIT_TEXT_MAX])
{
    struct line line = {.out = out};

    out[0] = '\0';
    if (finding->rule->change != NULL)
        fill_in(&line, finding->rule->change, finding->fact);
    else if (finding->remedy != NULL)
        put(&line, finding->remedy->value, strlen(finding->remedy->value));
}
