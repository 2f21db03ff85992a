/* errors.c - what went wrong, as a status and in words. */
#include "stores/file/errors.h"
#include "base/base.h"

#include <errno.h>
#include <string.h>

enum hf_status hf__error_status(int error)
{
    static const struct {
        int error;
        enum hf_status status;
    } known[] = {
        {EACCES, HF_DENIED},   {EPERM, HF_DENIED},
        {EROFS, HF_DENIED},    {ELOOP, HF_DENIED}, /* a link where a file should be */
        {ENOTDIR, HF_INVALID}, {ENAMETOOLONG, HF_INVALID},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].error == error)
            return known[i].status;
    return HF_UNREACHABLE;
}

enum hf_status hf__error_fail(const struct file_store *store, const char *what, int error,
                              struct hf_error *err)
{
    return hf__fail_lock(err, hf__error_status(error), NULL, store->shown, ": cannot %s: %s", what,
                         strerror(error));
}

enum hf_status hf__error_damaged(const struct file_store *store, const char *what, bool ask_above,
                                 struct hf_error *err)
{
    return hf__fail(err, HF_CORRUPT, "%s. %s: holdfast --store '%s' repair%s", what,
                    ask_above ? "Run" : "Stop its users and run", store->shown,
                    ask_above ? " --above TOKEN (the highest token your resources have admitted)"
                              : "");
}

enum hf_status hf__error_busy(const struct file_store *store, const struct view *view,
                              const char *name, int64_t now_ns, struct hf_error *err)
{
    char age[24];
    char label[HF_LABEL_MAX + 1];

    hf__copy_printable(label, sizeof label,
                       view->details.label[0] != '\0' ? view->details.label : "another");
    if (view->expires_ns == 0)
        return hf__fail_lock(err, HF_BUSY, name, store->shown, " is about to go to a waiter");
    return hf__fail_lock(
        err, HF_BUSY, name, store->shown, " has been held by %s for %s (token %llu)", label,
        hf__format_duration(age, sizeof age, (now_ns - view->details.taken_ns) / HF__NS_PER_MS),
        (unsigned long long)view->token);
}

enum hf_status hf__error_lost(const struct file_store *store, const struct hf_claim *claim,
                              enum hf_loss loss, struct hf_grant *grant, struct hf_error *err)
{
    if (grant != NULL)
        grant->loss = loss;
    return hf__fail_lock(err, HF_LOST, claim->name, store->shown, ": %s", hf_loss_text(loss));
}

enum hf_status hf__error_owner(const struct file_store *store, const struct hf_claim *claim,
                               struct hf_error *err)
{
    return hf__fail_lock(err, HF_INVALID, claim->name, store->shown, ": malformed owner");
}
