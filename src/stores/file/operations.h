/* operations.h - what is in the embedded store's table. Each operation is one part's, and called by
 * whoever has the table: no part calls another's (tests/tidy.sh). */
#ifndef HF_STORES_FILE_OPERATIONS_H
#define HF_STORES_FILE_OPERATIONS_H

#include <holdfast/store.h>

enum hf_status hf__file_acquire(struct hf_store_base *base, const struct hf_claim *claim,
                                struct hf_grant *grant, struct hf_error *err);
enum hf_status hf__file_acquire_any(struct hf_store_base *base, const struct hf_claim *claims,
                                    size_t count, size_t *which, struct hf_grant *grant,
                                    struct hf_error *err);
enum hf_status hf__file_acquire_free(struct hf_store_base *base, const struct hf_claim *claim,
                                     struct hf_grant *grant, struct hf_error *err);
enum hf_status hf__file_renew(struct hf_store_base *base, const struct hf_claim *claim,
                              struct hf_grant *grant, struct hf_error *err);
enum hf_status hf__file_release(struct hf_store_base *base, const struct hf_claim *claim,
                                struct hf_error *err);
struct hf_begun *hf__file_begin(struct hf_store_base *base, const struct hf_claim *claim);
bool hf__file_answered(struct hf_store_base *base, struct hf_begun *begun, int64_t until_ns);
enum hf_status hf__file_end(struct hf_store_base *base, struct hf_begun *begun,
                            struct hf_grant *grant, struct hf_error *err);
enum hf_status hf__file_revoke(struct hf_store_base *base, const struct hf_revoke *revoke,
                               struct hf_broken *out, struct hf_error *err);
enum hf_status hf__file_last_break(struct hf_store_base *base, const struct hf_query *query,
                                   struct hf_revocation *out, struct hf_error *err);
enum hf_status hf__file_list(struct hf_store_base *base, const struct hf_query *query,
                             hf_list_fn *fn, void *data, struct hf_error *err);
enum hf_status hf__file_record_put_both(struct hf_store_base *base,
                                        const struct hf_record_write *first,
                                        const struct hf_record_write *write, struct hf_error *err);
enum hf_status hf__file_put_forgettable(struct hf_store_base *base,
                                        const struct hf_record_write *first,
                                        const struct hf_record_write *write, struct hf_error *err);
enum hf_status hf__file_record_put(struct hf_store_base *base, const struct hf_record_write *write,
                                   struct hf_error *err);
enum hf_status hf__file_record_get(struct hf_store_base *base, const struct hf_record_query *query,
                                   hf_record_fn *fn, void *data, int64_t *now_ms,
                                   struct hf_error *err);
enum hf_status hf__file_record_list(struct hf_store_base *base, const struct hf_record_query *query,
                                    hf_record_fn *fn, void *data, struct hf_error *err);
enum hf_status hf__file_repair(const struct hf_host *host, const char *url, uint64_t above,
                               struct hf_error *report);
enum hf_status hf__file_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                               struct hf_error *report);
enum hf_status hf__file_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                                 int64_t deadline_ns, struct hf_error *err);
enum hf_status hf__file_audit(const struct hf_host *host, const char *url,
                              const struct hf_audit_query *query, hf_fact_fn *fn, void *data,
                              struct hf_error *err);

#endif /* HF_STORES_FILE_OPERATIONS_H */
