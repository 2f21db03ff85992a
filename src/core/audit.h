/* audit.h - what facts about a store mean for a lock.
 *
 * Pure: facts come in, findings come out. The rules are tables, audit_client.c, audit_redis.c and
 * audit_servers.c: each line looks at one fact and says what was found, why it matters and what to
 * change. What could not be examined is a finding too, never silence.
 *
 * What makes a setup risky for correctness is what can break the order of tokens, or hand out one
 * token twice: then the fence, too, is blind. What only lets two holders work at once is what the
 * fence is there for. */
#ifndef HF_CORE_AUDIT_H
#define HF_CORE_AUDIT_H

#include <holdfast/audit.h>

enum {
    HF__AUDIT_FACTS_MAX = 8192, /* facts that are judged together */
    HF__AUDIT_TEXT_MAX = 768    /* bytes of a sentence with its NUL */
};

/* What the lock is for: a double run costs time, or it costs the data. */
enum hf__purpose { HF__FOR_EFFICIENCY, HF__FOR_CORRECTNESS };

/* What a finding means. */
enum hf__audit_level {
    HF__AUDIT_UNFIT,    /* carries no lock at all */
    HF__AUDIT_RISKY,    /* carries none that correctness rests on; worth knowing for others */
    HF__AUDIT_ADVICE,   /* carries both, and could be better */
    HF__AUDIT_UNCHECKED /* could not be looked at */
};

struct hf__audit_facts {
    const struct hf_fact *items;
    size_t count;
};

/* Whether a fact that is known deserves a finding. */
typedef bool hf__deserved_fn(const struct hf__audit_facts *facts, const struct hf_fact *fact);

/* One line of a table. Found, why and change are sentences without a full stop; in the first and
 * the last {} stands for the fact's value. */
struct hf__audit_rule {
    const char *name; /* of the finding, for programs */
    const char *key;  /* of the fact; a '*' at the end stands for the rest */
    enum hf__audit_level level;
    /* Fitness is not shown unless this was looked at. Facts of this kind are told also with
     * HF_AUDIT_DECISIVE. */
    bool decisive;
    hf__deserved_fn *deserved; /* NULL: whenever the fact is there */
    const char *found;
    const char *why;
    const char *change; /* NULL: what the fact "fence.remedy" right behind it says */
};
/* All tables; the list ends with NULL, and each table with a rule without a name. */
extern const struct hf__audit_rule *const hf__audit_tables[];

struct hf__finding {
    const struct hf__audit_rule *rule;
    enum hf__audit_level level;   /* the rule's, or HF__AUDIT_UNCHECKED */
    const struct hf_fact *fact;   /* NULL: a decisive fact was not told at all ... */
    const char *where;            /* ... of this server */
    const struct hf_fact *remedy; /* if the rule has no change of its own; may be NULL */
};

/* Every finding, the gravest first, and at most max of them. How many. */
size_t hf__audit_judge(const struct hf__audit_facts *facts, struct hf__finding *out, size_t max);

enum hf__fitness {
    HF__FIT,
    HF__NOT_FIT,
    HF__NOT_SHOWN /* nothing speaks against it, but what decides could not be looked at */
};
enum hf__fitness hf__audit_fitness(const struct hf__finding *findings, size_t count,
                                   enum hf__purpose purpose);
/* Whether this very finding keeps the setup from being fit. */
bool hf__audit_counts(const struct hf__finding *finding, enum hf__purpose purpose);

/* The sentences of a finding. */
void hf__audit_found(const struct hf__finding *finding, char out[HF__AUDIT_TEXT_MAX]);
void hf__audit_change(const struct hf__finding *finding, char out[HF__AUDIT_TEXT_MAX]);

#endif /* HF_CORE_AUDIT_H */
