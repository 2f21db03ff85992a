/* explain.c - why a request was not answered, for a person. */
#include "base/base.h"
#include "http/http.h"

#include <stdio.h>
#include <string.h>

/* What libcurl's codes are to a person; its own words go between the two. */
static const struct trouble {
    CURLcode code;
    enum hf_status status;
    const char *before;
    const char *after;
} troubles[] = {
    {CURLE_PEER_FAILED_VERIFICATION, HF_DENIED,
     "the server's certificate cannot be trusted: ", "; check the host name and ca="},
    {CURLE_SSL_CERTPROBLEM, HF_DENIED,
     "our certificate or key cannot be used: ", "; check ca=, cert= and key="},
    {CURLE_SSL_CACERT_BADFILE, HF_DENIED,
     "our certificate or key cannot be used: ", "; check ca=, cert= and key="},
};

enum hf_status hf__http_explain(const struct hf__http *http, const char *endpoint, char *out,
                                size_t size)
{
    const char *detail = http->detail[0] != '\0' ? http->detail : curl_easy_strerror(http->code);

    for (size_t i = 0; i < sizeof troubles / sizeof *troubles; i++)
        if (troubles[i].code == http->code) {
            (void)snprintf(out, size, "%s%.80s%s", troubles[i].before, detail, troubles[i].after);
            return troubles[i].status;
        }
    if (strstr(detail, " alert ") != NULL) { /* of TLS; a host's name has no spaces */
        (void)snprintf(out, size,
                       "the server refuses our certificate (%.70s); check cert= and key=", detail);
        return HF_DENIED;
    }
    (void)snprintf(out, size, "%s %.60s: %.80s",
                   http->code == CURLE_SSL_CONNECT_ERROR ? "no TLS with" : "no answer from",
                   endpoint, detail);
    return HF_UNREACHABLE;
}
