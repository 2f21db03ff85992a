/* tls.c - TLS over a non-blocking socket, by OpenSSL. */
#include "stores/redis/wire/tls.h"
#include "base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct rd_tls_config {
    SSL_CTX *context;
    BIO_METHOD *socket; /* a socket BIO that sends with MSG_NOSIGNAL */
    bool verify;
};

struct rd_tls {
    SSL *ssl;
};

static BIO_METHOD *make_socket_method(void);
static bool load_files(SSL_CTX *context, const struct rd_url *url, const char **what);

static const char *openssl_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    return reason != NULL ? reason : "unknown reason";
}

enum hf_status rd_tls_config_open(const struct rd_url *url, struct rd_tls_config **out,
                                  struct hf_error *err)
{
    struct rd_tls_config *config = calloc(1, sizeof *config);
    enum hf_status status = HF_OK;
    const char *what = "";

    if (config == NULL)
        return hf__nomem(err);
    ERR_clear_error();
    config->verify = url->verify;
    config->context = SSL_CTX_new(TLS_client_method());
    config->socket = make_socket_method();
    if (config->context == NULL || config->socket == NULL) {
        status = hf__nomem(err);
        goto out;
    }
    (void)SSL_CTX_set_min_proto_version(config->context, TLS1_2_VERSION);
    SSL_CTX_set_mode(config->context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(config->context, url->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (!load_files(config->context, url, &what))
        status = hf__fail_lock(err, HF_INVALID, NULL, url->parts.shown, ": cannot use %s: %s", what,
                               openssl_reason());
out:
    ERR_clear_error();
    if (status != HF_OK) {
        rd_tls_config_close(config);
        return status;
    }
    *out = config;
    return hf__ok(err);
}

void rd_tls_config_close(struct rd_tls_config *config)
{
    if (config == NULL)
        return;
    SSL_CTX_free(config->context);
    BIO_meth_free(config->socket);
    free(config);
}

static bool load_files(SSL_CTX *context, const struct rd_url *url, const char **what)
{
    *what = url->ca[0] != '\0' ? url->ca : "the system's certificates";
    if (url->ca[0] != '\0' ? SSL_CTX_load_verify_locations(context, url->ca, NULL) != 1
                           : SSL_CTX_set_default_verify_paths(context) != 1)
        return false;
    if (url->cert[0] == '\0')
        return true;
    *what = url->cert;
    if (SSL_CTX_use_certificate_chain_file(context, url->cert) != 1)
        return false;
    *what = url->key;
    return SSL_CTX_use_PrivateKey_file(context, url->key, SSL_FILETYPE_PEM) == 1;
}

/* The name the certificate has to carry; a host name is also sent along (SNI). */
static bool expect_host(SSL *ssl, const char *host, bool verify)
{
    unsigned char raw[16];
    bool is_address = inet_pton(AF_INET, host, raw) == 1 || inet_pton(AF_INET6, host, raw) == 1;

    if (!is_address && host[0] != '/' && SSL_set_tlsext_host_name(ssl, host) != 1)
        return false;
    if (!verify || host[0] == '/')
        return true;
    if (is_address)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1;
}

/* What SSL_get_error says of an unfinished call, as errno and a poll event. */
static short wanted(const struct rd_tls *tls, int result)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        errno = EAGAIN;
        return POLLIN;
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return POLLOUT;
    default:
        errno = EPROTO;
        return 0;
    }
}

bool rd_tls_step(struct rd_tls *tls, short *wants, enum hf_status *status, char *why,
                 size_t why_size)
{
    int result;
    long verdict;

    ERR_clear_error();
    result = SSL_connect(tls->ssl);
    *status = HF_OK;
    if (result == 1)
        return true;
    *wants = wanted(tls, result);
    if (errno == EAGAIN)
        return false;
    verdict = SSL_get_verify_result(tls->ssl);
    (void)snprintf(why, why_size, "TLS: %s",
                   verdict != X509_V_OK ? X509_verify_cert_error_string(verdict)
                                        : openssl_reason());
    ERR_clear_error();
    *status = verdict != X509_V_OK ? HF_DENIED : HF_UNREACHABLE;
    return true;
}

struct rd_tls *rd_tls_open(const struct rd_tls_config *config, int fd, const char *host)
{
    struct rd_tls *tls = calloc(1, sizeof *tls);
    BIO *bio = NULL;

    if (tls == NULL)
        return NULL;
    tls->ssl = SSL_new(config->context);
    bio = tls->ssl != NULL ? BIO_new(config->socket) : NULL;
    if (bio != NULL) {
        BIO_set_data(bio, (void *)(intptr_t)fd);
        BIO_set_init(bio, 1);
        SSL_set_bio(tls->ssl, bio, bio);
        if (expect_host(tls->ssl, host, config->verify))
            return tls;
    }
    rd_tls_close(tls, true);
    return NULL;
}

void rd_tls_close(struct rd_tls *tls, bool silent)
{
    if (tls == NULL)
        return;
    if (!silent && tls->ssl != NULL && SSL_is_init_finished(tls->ssl))
        (void)SSL_shutdown(tls->ssl);
    SSL_free(tls->ssl);
    ERR_clear_error();
    free(tls);
}

ssize_t rd_tls_read(struct rd_tls *tls, char *buf, size_t len, short *wants)
{
    int result;

    ERR_clear_error();
    result = SSL_read(tls->ssl, buf, len > INT32_MAX ? INT32_MAX : (int)len);
    if (result > 0)
        return result;
    if (SSL_get_error(tls->ssl, result) == SSL_ERROR_ZERO_RETURN)
        return 0;
    *wants = wanted(tls, result);
    return -1;
}

ssize_t rd_tls_write(struct rd_tls *tls, const char *buf, size_t len, short *wants)
{
    int result;

    ERR_clear_error();
    result = SSL_write(tls->ssl, buf, len > INT32_MAX ? INT32_MAX : (int)len);
    if (result > 0)
        return result;
    *wants = wanted(tls, result);
    return -1;
}

/* A socket BIO of our own, because OpenSSL's raises SIGPIPE. */

static int socket_write(BIO *bio, const char *buf, int len)
{
    ssize_t done =
        send((int)(intptr_t)BIO_get_data(bio), buf, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);

    BIO_clear_retry_flags(bio);
    if (done < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)done;
}

static int socket_read(BIO *bio, char *buf, int len)
{
    ssize_t done = recv((int)(intptr_t)BIO_get_data(bio), buf, (size_t)len, MSG_DONTWAIT);

    BIO_clear_retry_flags(bio);
    if (done < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)done;
}

static long socket_ctrl(BIO *bio, int command, long number, void *data)
{
    (void)bio;
    (void)number;
    (void)data;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_socket_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "holdfast");

    if (method == NULL)
        return NULL;
    (void)BIO_meth_set_write(method, socket_write);
    (void)BIO_meth_set_read(method, socket_read);
    (void)BIO_meth_set_ctrl(method, socket_ctrl);
    return method;
}
