/* several.h - an attempt to take one of several locks, as the files that carry it out see it. */
#ifndef HF_ZOOKEEPER_SEVERAL_H
#define HF_ZOOKEEPER_SEVERAL_H

#include "stores/zookeeper/attempt.h"

struct zk_several {
    struct zk_store *store;
    const struct hf_claim *claims;
    size_t count;
    struct zk_attempt *at;    /* one for each claim, all in one session */
    struct zk_attempt *place; /* in the common line; NULL: there is none */
    struct hf_claim *tries;   /* the claims, such that they do not wait */
    struct hf_claim line;     /* the claim of place */
    char line_name[HF_NAME_MAX + 1];
    struct zk_listener *listeners; /* as many as claims, with one descriptor */
    size_t which;                  /* the one that is first in its queue */
    bool doubt;                    /* a child of ours may be there that nobody wants */
};

/* any.c */

/* Reads the queue of every lock into at[i].queue. */
int zk_read_queues(struct zk_several *s);
/* The same of the line, into place->queue. */
int zk_read_line(struct zk_several *s);
/* Takes lock i if it is free: ZOK, and which is set; ZK_WAIT_OVER: it is not. From the line, it is
 * one step out of that and into the queue; ZK_OVERTAKEN: another was faster. */
int zk_try(struct zk_several *s, size_t i);
/* The first that a look found free, the same. */
int zk_try_free(struct zk_several *s);

/* every.c */

/* In every queue until we are first in one: ZOK, and which is set. */
int zk_every_wait(struct zk_several *s);

/* line.c */

/* The line of a numbered slot, NAME#NUMBER: 0x01 NAME. False: the name is no slot's. */
bool zk_line_name(const char *name, char out[HF_NAME_MAX + 1], size_t *number);
/* The same of several: they are all the slots up to some number, in whatever order. */
bool zk_line_of_all(const struct hf_claim *claims, size_t count, char out[HF_NAME_MAX + 1]);
/* In the line until one of the locks is ours: ZOK, and which is set. */
int zk_line_wait(struct zk_several *s);

#endif /* HF_ZOOKEEPER_SEVERAL_H */
