/* setup.c - what every connection of a store needs. */
#include "stores/redis/wire/pool.h"

#include <string.h>

enum hf_status rd_setup_init(struct rd_setup *setup, const struct hf_host *host, const char *url,
                             struct hf_error *err)
{
    enum hf_status status = rd_url_parse(url, &setup->url, err);

    setup->host = host;
    setup->tls = NULL;
    if (status == HF_OK)
        status = rd_url_find_password(&setup->url, err);
    if (status == HF_OK && setup->url.tls)
        status = rd_tls_config_open(&setup->url, &setup->tls, err);
    return status;
}

void rd_setup_release(struct rd_setup *setup)
{
    rd_tls_config_close(setup->tls);
    explicit_bzero(&setup->url, sizeof setup->url);
}
