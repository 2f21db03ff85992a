/* url.h - what a zookeeper URL says. */
#ifndef HF_ZOOKEEPER_URL_H
#define HF_ZOOKEEPER_URL_H

#include "base/url.h"
#include "stores/zookeeper/margin.h"

#define ZK_HOSTS_MAX         1024 /* bytes of all hosts, as the library wants them */
#define ZK_ROOT_MAX          256
#define ZK_PASSWORD_VARIABLE "HOLDFAST_ZOOKEEPER_PASSWORD"

struct zk_url {
    struct hf__url common;
    char hosts[ZK_HOSTS_MAX]; /* "h1:2181,h2:2181", as the library wants it */
    char root[ZK_ROOT_MAX];   /* CHROOT/holdfast: the parent of all locks */
    char password_file[HF__URL_TEXT_MAX];
    int64_t tick_ms; /* the servers' tickTime */
    bool tls;        /* asked for, and cannot be had */
};

/* HF_INVALID; HF_UNSUPPORTED for what the client library cannot do. */
enum hf_status zk_url_parse(const char *text, struct zk_url *out, struct hf_error *err);
/* The hosts, with number `first`, modulo their count, in front. */
void zk_url_hosts(const struct zk_url *url, unsigned first, char out[ZK_HOSTS_MAX]);
/* From the file or the environment if the URL has none. */
enum hf_status zk_url_find_password(struct zk_url *url, struct hf_error *err);

#endif /* HF_ZOOKEEPER_URL_H */
