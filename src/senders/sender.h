/* sender.h - how messages leave a relay: a table of functions for a command that reads lines (in
 * the program) and for HTTP (a plugin).
 *
 * Up to a number of messages are under way at once, each a delivery with a number. One thread. */
#ifndef HF_SENDERS_SENDER_H
#define HF_SENDERS_SENDER_H

#include "base/base.h"
#include "core/outbox.h"

#include <poll.h>

#define HF__SENDER_ABI 1

enum { HF__SENDER_WHY_SIZE = 200, HF__SENDER_FDS_MAX = 8 };

struct hf__sender; /* an open one */

struct hf__sender_options {
    const char *url;                           /* HTTP */
    char **command;                            /* else CMD, its words */
    char **environment;                        /* of CMD */
    int *exec_errno;                           /* out: why it could not be executed */
    unsigned deliveries;                       /* at once */
    int64_t limit_ms;                          /* for one answer */
    void (*say)(void *data, const char *text); /* what people should know */
    void *data;
};

/* A message to be sent; everything lives until it is answered. */
struct hf__sender_message {
    const char *uid;
    const char *topic;
    const char *key;
    const char *headers; /* a JSON object, in one line */
    const char *created;
    const char *payload;
    size_t payload_len;
    unsigned attempt; /* from 1 on */
    uint64_t token;
};

struct hf__sender_answer {
    unsigned delivery;
    enum hf__outbox_verdict verdict;
    int64_t asked_ms;              /* how long the receiver wants us to wait; < 0: it did not say */
    char why[HF__SENDER_WHY_SIZE]; /* with RETRY and STALE */
};

struct hf__sender_ops {
    unsigned abi; /* HF__SENDER_ABI */
    /* HF_OK; HF_INVALID: no such URL; HF_NOMEM. */
    enum hf_status (*open)(const struct hf__sender_options *options, struct hf__sender **out,
                           struct hf_error *err);
    /* Ends what is under way. Takes NULL. */
    void (*close)(struct hf__sender *sender);
    /* Sends a message as a delivery whose number is free. What fails is answered later, with
     * RETRY. HF_OK; HF_NOMEM. */
    enum hf_status (*send)(struct hf__sender *sender, unsigned delivery,
                           const struct hf__sender_message *message, struct hf_error *err);
    /* Waits until there is an answer, one of count other descriptors (HF__SENDER_FDS_MAX at most)
     * is ready, or until_ns has come. */
    void (*wait)(struct hf__sender *sender, struct pollfd *fds, nfds_t count, int64_t until_ns);
    /* The next answer, false if there is none now. The number of its delivery is free again. */
    bool (*answer)(struct hf__sender *sender, struct hf__sender_answer *out);
};

/* The one symbol a plugin exports. */
HF_API const struct hf__sender_ops *hf_sender_plugin(void);

/* Loads the plugin for HTTP, send-http.so, which is looked for where stores are. HF_OK;
 * HF_UNSUPPORTED. */
enum hf_status hf__sender_find(const struct hf__sender_ops **out, struct hf_error *err);

#endif /* HF_SENDERS_SENDER_H */
