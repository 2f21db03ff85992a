/* answer.c - what an answer of the server says. */
#include "stores/http/answer.h"
#include "base/base.h"

#include <string.h>

/* So that no answer, whoever sent it, is deeper than what we go through. */
static bool is_flat(const char *text, size_t len)
{
    bool quoted = false;
    int depth = 0;

    for (size_t i = 0; i < len; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && (text[i] == '{' || text[i] == '['))
            depth++;
        else if (!quoted && (text[i] == '}' || text[i] == ']'))
            depth--;
        if (depth > HT_DEPTH_MAX)
            return false;
    }
    return true;
}

cJSON *ht_parse(const char *text, size_t len)
{
    cJSON *json = is_flat(text, len) ? cJSON_ParseWithLength(text, len) : NULL;

    if (json != NULL && !cJSON_IsObject(json)) {
        cJSON_Delete(json);
        json = NULL;
    }
    return json;
}

const char *ht_text(const cJSON *object, const char *name, const char *otherwise)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return text != NULL ? text : otherwise;
}

int64_t ht_number(const cJSON *object, const char *name, int64_t otherwise)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    double value = cJSON_IsNumber(item) ? item->valuedouble : -1;

    /* Up to 2^53 a double can be any whole number. */
    return value >= 0 && value <= 9007199254740992.0 ? (int64_t)value : otherwise;
}

bool ht_flag(const cJSON *object, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

uint64_t ht_token(const cJSON *object)
{
    uint64_t token;

    return hf__parse_u64(ht_text(object, "token", ""), &token) && token <= INT64_MAX ? token : 0;
}

enum hf_loss ht_loss(const cJSON *object)
{
    static const struct {
        const char *word;
        enum hf_loss loss;
    } known[] = {{"expired", HF_LOSS_EXPIRED},
                 {"taken", HF_LOSS_TAKEN},
                 {"broken", HF_LOSS_BROKEN},
                 {"forgotten", HF_LOSS_FORGOTTEN}};
    const char *word = ht_text(object, "loss", "");

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].word, word) == 0)
            return known[i].loss;
    return HF_LOSS_NONE;
}

unsigned ht_features(const cJSON *object)
{
    static const struct {
        const char *name;
        unsigned bit;
    } known[] = {{"fair", HF_FEATURE_FAIR},
                 {"durable-tokens", HF_FEATURE_DURABLE_TOKENS},
                 {"detached", HF_FEATURE_DETACHED},
                 {"renew-ttl", HF_FEATURE_RENEW_TTL}};
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "features");
    const cJSON *item;
    unsigned features = 0;

    cJSON_ArrayForEach(item, list)
    {
        const char *name = cJSON_GetStringValue(item);

        for (size_t i = 0; name != NULL && i < sizeof known / sizeof *known; i++)
            if (strcmp(known[i].name, name) == 0)
                features |= known[i].bit;
    }
    return features;
}

bool ht_granted(const cJSON *object, int64_t sent_at_ns, int64_t now_ns, struct hf_grant *out)
{
    const char *owner = ht_text(object, "owner", "");
    int64_t ttl_ms = ht_number(object, "ttl_ms", 0);
    int64_t after_ms = ht_number(object, "after_ms", 0);
    int64_t passed_ms = (now_ns - sent_at_ns) / HF__NS_PER_MS;

    if (ht_token(object) == 0 || ttl_ms <= 0 || ttl_ms > HF_TTL_MAX_MS ||
        strspn(owner, "0123456789abcdef") != HF_OWNER_LEN || owner[HF_OWNER_LEN] != '\0')
        return false;
    /* The server got our request after we sent it, and asked its store that much later, by a clock
     * that may be a little faster than ours. Nothing can have happened after now. */
    if (after_ms > passed_ms)
        after_ms = passed_ms;
    out->token = ht_token(object);
    out->ttl_ms = (uint32_t)ttl_ms;
    out->sent_at_ns = sent_at_ns + after_ms * (HF__NS_PER_MS / 100 * 99);
    memcpy(out->owner, owner, HF_OWNER_LEN + 1);
    return true;
}
