/* url.h - what a zookeeper URL says. */
#ifndef HF_ZOOKEEPER_URL_H
#define HF_ZOOKEEPER_URL_H

#include "stores/zookeeper/margin.h"
#include <holdfast.h>

#define ZK_TEXT_MAX          1024
#define ZK_SECRET_MAX        256
#define ZK_ROOT_MAX          256
#define ZK_PASSWORD_VARIABLE "HOLDFAST_ZOOKEEPER_PASSWORD"

struct zk_url {
    char shown[ZK_TEXT_MAX]; /* without the password                           */
    char hosts[ZK_TEXT_MAX]; /* "h1:2181,h2:2181", as the library wants it      */
    unsigned host_count;
    char root[ZK_ROOT_MAX];   /* CHROOT/holdfast: the parent of all locks        */
    char user[ZK_SECRET_MAX]; /* "": no credentials                           */
    char password[ZK_SECRET_MAX];
    char password_file[ZK_TEXT_MAX];
    bool has_password;
    uint32_t tick_ms; /* the servers' tickTime */
};

/* HF_INVALID; HF_UNSUPPORTED for what the client library cannot do. */
enum hf_status zk_url_parse(const char *text, struct zk_url *out, struct hf_error *err);
/* The hosts, with number `first`, modulo their count, in front. */
void zk_url_hosts(const struct zk_url *url, unsigned first, char out[ZK_TEXT_MAX]);
/* From the file or the environment if the URL has none. */
enum hf_status zk_url_find_password(struct zk_url *url, struct hf_error *err);

#endif /* HF_ZOOKEEPER_URL_H */
