/* script.c - calling the scripts. */
#include "stores/redis/script.h"

#include <stdio.h>

/* How many of lock, record, queue and leases each script works on. */
static const size_t key_counts[RD_SCRIPT_COUNT] = {
    [RD_SCRIPT_ACQUIRE] = 4, [RD_SCRIPT_LEAVE] = 4,   [RD_SCRIPT_LIST] = 4,
    [RD_SCRIPT_LOOK] = 2,    [RD_SCRIPT_RELEASE] = 4, [RD_SCRIPT_RENEW] = 2,
};

void rd_script_begin(struct rd_request *request, enum rd_script_id id, const struct rd_keys *keys,
                     size_t arg_count)
{
    const char *const all[] = {keys->lock, keys->record, keys->queue, keys->leases};

    rd_request_begin(request, 3 + key_counts[id] + arg_count);
    rd_request_word(request, "EVALSHA");
    rd_request_word(request, rd_scripts[id].sha1);
    rd_request_number(request, (int64_t)key_counts[id]);
    for (size_t i = 0; i < key_counts[id]; i++)
        rd_request_word(request, all[i]);
}

void rd_script_load_all(struct rd_request *request)
{
    for (size_t i = 0; i < RD_SCRIPT_COUNT; i++)
        rd_request_command(request,
                           (const char *const[]){"SCRIPT", "LOAD", rd_scripts[i].text, NULL});
}
