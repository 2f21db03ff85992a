/* options.c - what URLs say of where to connect, and how. */
#include "base/base.h"
#include "http/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Letters, digits and what names and addresses are made of: nothing that libcurl reads
 * otherwise. */
static bool host_is_plain(const char *host)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";

    return host[strspn(host, plain)] == '\0';
}

bool hf__http_endpoint(char *out, size_t size, bool tls, const struct hf__address *address)
{
    size_t len = (size_t)snprintf(out, size, tls ? "https://" : "http://");

    return host_is_plain(address->host) && hf__address_format(out + len, size - len, address);
}

static enum hf_status check_file(const char *path, const char *what, const char *shown,
                                 struct hf_error *err)
{
    if (path == NULL || path[0] == '\0' || access(path, R_OK) == 0)
        return HF_OK;
    return hf__fail_lock(err, errno == EACCES || errno == EPERM ? HF_DENIED : HF_INVALID, NULL,
                         shown, ": cannot read the %s from %.60s: %s", what, path, strerror(errno));
}

enum hf_status hf__http_check_files(const struct hf__http_options *options, const char *shown,
                                    struct hf_error *err)
{
    enum hf_status status = check_file(options->ca, "authority", shown, err);

    if (status == HF_OK)
        status = check_file(options->cert, "certificate", shown, err);
    return status == HF_OK ? check_file(options->key, "key", shown, err) : status;
}
