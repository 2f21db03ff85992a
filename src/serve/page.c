/* page.c - the page and its policy.
 *
 * The policy names the script and the style by their hashes, so whatever else finds its way into
 * the page does not run. They are taken from the page that is sent, and cannot disagree with it. */
#include "serve/page.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <string.h>

enum { HASH_SIZE = 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1 }; /* in base64 */

static const char page[] = {
#include "serve/page.inc"
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char script_hash[HASH_SIZE], style_hash[HASH_SIZE];

/* The hash of what is between the tags. Both are there: a test looks at it in a browser. */
static void hash_between(const char *open, const char *close, char out[HASH_SIZE])
{
    const char *text = strstr(page, open) + strlen(open);
    unsigned char hash[SHA256_DIGEST_LENGTH];

    SHA256((const unsigned char *)text, (size_t)(strstr(text, close) - text), hash);
    EVP_EncodeBlock((unsigned char *)out, hash, sizeof hash);
}

static void hash_all(void)
{
    hash_between("<script>", "</script>", script_hash);
    hash_between("<style>", "</style>", style_hash);
}

void serve_page(struct exchange *x)
{
    pthread_once(&once, hash_all);
    text_printf(&x->answer.headers,
                "Content-Security-Policy: default-src 'none'; connect-src 'self'; base-uri 'none'; "
                "form-action 'none'; frame-ancestors 'none'; script-src 'sha256-%s'; "
                "style-src 'sha256-%s'\r\nReferrer-Policy: no-referrer\r\n",
                script_hash, style_hash);
    text_add(&x->answer.body, page, sizeof page - 1);
    x->answer.type = "text/html; charset=utf-8";
    x->answer.code = 200;
    x->answer.status = HF_OK;
}
