/* script.h - the Lua scripts, embedded at build time from scripts/, each with its SHA-1. */
#ifndef HF_STORES_REDIS_SCRIPT_H
#define HF_STORES_REDIS_SCRIPT_H

#include "stores/redis/keys.h"
#include "stores/redis/wire/request.h"

struct rd_script {
    const char *name;
    const char *sha1;
    const char *text;
};

/* Generated; in alphabetical order of their file names. */
enum rd_script_id {
    RD_SCRIPT_ACQUIRE,
    RD_SCRIPT_ACQUIRE_ANY,
    RD_SCRIPT_END_QUARANTINE,
    RD_SCRIPT_FENCE,
    RD_SCRIPT_FORGET,
    RD_SCRIPT_HANDSHAKE,
    RD_SCRIPT_LAST_BREAK,
    RD_SCRIPT_LEAVE,
    RD_SCRIPT_LIST,
    RD_SCRIPT_LOOK,
    RD_SCRIPT_RECORD_GET,
    RD_SCRIPT_RECORD_LIST,
    RD_SCRIPT_RECORD_PUT,
    RD_SCRIPT_REDLOCK_GRANT,
    RD_SCRIPT_REDLOCK_IDENTITY,
    RD_SCRIPT_REDLOCK_LIST,
    RD_SCRIPT_REDLOCK_LOOK,
    RD_SCRIPT_REDLOCK_RAISE,
    RD_SCRIPT_REDLOCK_RELEASE,
    RD_SCRIPT_REDLOCK_RENEW,
    RD_SCRIPT_REDLOCK_REVOKE,
    RD_SCRIPT_RELEASE,
    RD_SCRIPT_RENEW,
    RD_SCRIPT_REVOKE,
    RD_SCRIPT_WAITERS,
    RD_SCRIPT_COUNT
};
extern const struct rd_script rd_scripts[RD_SCRIPT_COUNT];

/* Begins "EVALSHA sha keys..."; arg_count calls of rd_request_word have to follow. */
void rd_script_begin(struct rd_request *request, enum rd_script_id id, const struct rd_keys *keys,
                     size_t arg_count);
/* "SCRIPT LOAD" for each of them; RD_SCRIPT_COUNT replies. */
void rd_script_load_all(struct rd_request *request);

#endif /* HF_STORES_REDIS_SCRIPT_H */
