/* bench_fence_redis.c SOCKET SCRIPT - what the fence adds to a SET in Redis. One round trip
 * each. */
#include "compare.h"

#include <hiredis/hiredis.h>

enum { ROUNDS = 300, BATCH = 50, SCRIPT_MAX = 64 * 1024 };

struct peer {
    redisContext *redis;
    char sha[64];
};

static void check(const struct peer *peer, redisReply *reply)
{
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "bench: redis: %s\n", reply != NULL ? reply->str : peer->redis->errstr);
        exit(1);
    }
    freeReplyObject(reply);
}

static void plain(void *data)
{
    struct peer *peer = data;

    check(peer, redisCommand(peer->redis, "SET plain %s", "a value of some length"));
}

static void fenced(void *data)
{
    struct peer *peer = data;

    check(peer, redisCommand(peer->redis,
                             "EVALSHA %s 2 fenced holdfast:{fenced}:fence set 1794780471337312 %s "
                             "%s 0",
                             peer->sha, "redis://127.0.0.1:6379", "a value of some length"));
}

int main(int argc, char **argv)
{
    static char script[SCRIPT_MAX];
    struct peer peer = {.redis = NULL};
    FILE *file = argc == 3 ? fopen(argv[2], "r") : NULL;
    size_t len = file != NULL ? fread(script, 1, sizeof script - 1, file) : 0;
    redisReply *reply;

    if (len == 0)
        return 64;
    (void)fclose(file);
    peer.redis = redisConnect("127.0.0.1", atoi(argv[1]));
    if (peer.redis == NULL || peer.redis->err != 0)
        return 1;
    reply = redisCommand(peer.redis, "SCRIPT LOAD %b", script, len);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        return 1;
    (void)snprintf(peer.sha, sizeof peer.sha, "%s", reply->str);
    freeReplyObject(reply);
    compare_print("Redis SET", &(struct comparison){plain, fenced, &peer, ROUNDS, BATCH}, 1.3);
    redisFree(peer.redis);
    return 0;
}
