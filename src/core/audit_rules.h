/* audit_rules.h - the tables of rules, and what their lines are made of. */
#ifndef HF_CORE_AUDIT_RULES_H
#define HF_CORE_AUDIT_RULES_H

#include "core/audit.h"

extern const struct hf__audit_rule hf__audit_client_rules[];
extern const struct hf__audit_rule hf__audit_file_rules[];
extern const struct hf__audit_rule hf__audit_redis_rules[];
extern const struct hf__audit_rule hf__audit_etcd_rules[];
extern const struct hf__audit_rule hf__audit_zookeeper_rules[];
extern const struct hf__audit_rule hf__audit_postgres_rules[];

/* The fact of that key about the same server, or about all of it; NULL: none, or not known. */
const struct hf_fact *hf__audit_beside(const struct hf__audit_facts *facts,
                                       const struct hf_fact *fact, const char *key);
/* Its value as a number; `otherwise` if there is none. Takes NULL. */
int64_t hf__audit_number(const struct hf_fact *fact, int64_t otherwise);
/* The number of the fact beside it. */
int64_t hf__audit_number_beside(const struct hf__audit_facts *facts, const struct hf_fact *fact,
                                const char *key, int64_t otherwise);
bool hf__audit_is(const struct hf_fact *fact, const char *value); /* takes NULL */

/* What many rules ask. */
bool hf__audit_is_no(const struct hf__audit_facts *facts, const struct hf_fact *fact);
bool hf__audit_is_off(const struct hf__audit_facts *facts, const struct hf_fact *fact);
bool hf__audit_is_one(const struct hf__audit_facts *facts, const struct hf_fact *fact);
bool hf__audit_is_even(const struct hf__audit_facts *facts, const struct hf_fact *fact);
bool hf__audit_is_positive(const struct hf__audit_facts *facts, const struct hf_fact *fact);
bool hf__audit_says_something(const struct hf__audit_facts *facts, const struct hf_fact *fact);
/* "off", and other machines are on the way. */
bool hf__audit_is_off_abroad(const struct hf__audit_facts *facts, const struct hf_fact *fact);
/* What the clients of a server agreed on (0: nothing yet) is not the URL's. */
bool hf__audit_is_another_max_ttl(const struct hf__audit_facts *facts, const struct hf_fact *fact);

#endif /* HF_CORE_AUDIT_RULES_H */
