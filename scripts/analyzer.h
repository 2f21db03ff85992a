/* analyzer.h - what clang-tidy cannot see from one file alone: these calls return the status they
 * were given, so that after a failure nobody goes on. Included by lint.sh behind base.h. */
#define hf__fail(err, code, ...) ((void)hf__fail(err, code, __VA_ARGS__), (code))
#define hf__nomem(err)           ((void)hf__nomem(err), HF_NOMEM)
#define hf__ok(err)              ((void)hf__ok(err), HF_OK)
#define hf__fail_lock(err, code, lock, shown, ...)                                                 \
    ((void)hf__fail_lock(err, code, lock, shown, __VA_ARGS__), (code))
#define hf__fail_max_ttl(err, lock, shown, ttl_ms, max_ttl_ms)                                     \
    ((void)hf__fail_max_ttl(err, lock, shown, ttl_ms, max_ttl_ms), HF_INVALID)
