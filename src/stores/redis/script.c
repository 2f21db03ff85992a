/* script.c - calling the scripts. */
#include "stores/redis/script.h"

void rd_script_begin(struct rd_request *request, enum rd_script_id id, const struct rd_keys *keys,
                     size_t arg_count)
{
    rd_request_begin(request, 5 + arg_count);
    rd_request_word(request, "EVALSHA");
    rd_request_word(request, rd_scripts[id].sha1);
    rd_request_word(request, "2");
    rd_request_word(request, keys->lock);
    rd_request_word(request, keys->counter);
}

void rd_script_load_all(struct rd_request *request)
{
    for (size_t i = 0; i < RD_SCRIPT_COUNT; i++)
        rd_request_command(request,
                           (const char *const[]){"SCRIPT", "LOAD", rd_scripts[i].text, NULL});
}
