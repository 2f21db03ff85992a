/* fences.c - the fences that --fence and --db name: what `fence check` finds out about them, as
 * facts. */
#include "cli/audit/audit.h"

#include "base/base.h"
#include "base/fact.h"
#include "cli/fence/fence.h"

#include <string.h>

enum { LIMIT_MS = 5000, CHECK_MAX = 40 };

#define SOURCE "fence check"

/* A table may be called with its schema. */
struct resource {
    char text[CLI_WORD_SIZE]; /* cut in two by a NUL */
    struct fence_target target;
};

static bool is_url(const char *word)
{
    return strstr(word, "://") != NULL;
}

static bool is_table(const struct audit_fences *fences, const char *word)
{
    return fences->has_db && !is_url(word) && strchr(word, '/') == NULL;
}

int audit_fences_check(const struct cli_command *command, const struct audit_fences *fences)
{
    size_t tables = 0;

    for (size_t i = 0; i < fences->named.count; i++) {
        const char *word = fences->named.items[i];
        struct cli_shown shown;

        tables += is_table(fences, word);
        if (word[0] == '\0')
            return cli_usage_error(command, "--fence: it has no name");
        if (is_url(word) && (strchr(word, '#') == NULL || strchr(word, '#')[1] == '\0'))
            return cli_usage_error(command, "--fence: a key of a store is named as URL#KEY, not %s",
                                   cli_shown(&shown, word));
    }
    if (fences->has_db && tables == 0)
        return cli_usage_error(command, "--db needs --fence TABLE");
    return 0;
}

static void read_resource(const struct audit_fences *fences, const char *word, struct resource *out)
{
    char *gap;

    memcpy(out->text, word, strlen(word) + 1);
    out->target = (struct fence_target){.file = out->text};
    if (is_url(word)) {
        gap = strchr(out->text, '#');
        *gap = '\0';
        out->target = (struct fence_target){.store_url = out->text, .key = gap + 1};
    } else if (is_table(fences, word)) {
        gap = strchr(out->text, '.');
        out->target = (struct fence_target){.db_url = fences->db, .table = out->text};
        if (gap != NULL) {
            *gap = '\0';
            out->target.schema = out->text;
            out->target.table = gap + 1;
        }
    }
}

/* What fence check found becomes facts: the finding, and what it says to do about it. */
static void found(enum fence_level level, const char *check, const char *text, const char *remedy,
                  void *data)
{
    struct hf__teller *teller = data;
    char key[CHECK_MAX];

    (void)snprintf(key, sizeof key, "fence.%s.%.20s", level == FENCE_PROBLEM ? "problem" : "note",
                   check);
    hf__tell(teller, (struct hf__topic){key, NULL, SOURCE}, "%s", text);
    if (remedy[0] != '\0')
        hf__tell(teller, (struct hf__topic){"fence.remedy", NULL, SOURCE}, "%s", remedy);
}

static void failed(const struct hf_error *err, void *data)
{
    hf__tell_unknown(data, (struct hf__topic){"fence.unread", NULL, SOURCE}, cli_text_of(err));
}

/* A fence in Redis is as durable as that Redis. */
static bool keep_durability(const struct hf_fact *fact, void *data)
{
    static const char *const about[][2] = {{"redis.appendonly", "mark.appendonly"},
                                           {"redis.appendfsync", "mark.appendfsync"},
                                           {"redis.maxmemory", "mark.maxmemory"},
                                           {"redis.maxmemory_policy", "mark.maxmemory_policy"}};
    struct hf__teller *teller = data;

    for (size_t i = 0; i < sizeof about / sizeof *about; i++) {
        const struct hf__topic topic = {about[i][1], fact->unit, fact->source};

        if (strcmp(fact->key, about[i][0]) != 0)
            continue;
        if (fact->unknown != NULL)
            hf__tell_unknown(teller, topic, fact->unknown);
        else
            hf__tell(teller, topic, "%s", fact->value);
    }
    return !teller->stopped;
}

static void tell_durability(const char *url, struct hf__teller *teller)
{
    const struct hf_audit_options options = {
        .size = sizeof options, .scope = HF_AUDIT_DECISIVE, .limit_ms = LIMIT_MS};
    struct hf_error err;

    if (hf_audit(url, &options, keep_durability, teller, &err) != HF_OK)
        failed(&err, teller);
}

void audit_fences_count(const struct audit_fences *fences, struct audit_facts *facts)
{
    struct hf__teller teller = {.fn = audit_facts_add, .data = facts};

    hf__tell(&teller, (struct hf__topic){"client.fences", NULL, "--fence"}, "%zu",
             fences->named.count);
}

void audit_fences_tell(const struct audit_fences *fences, const char *url,
                       struct audit_facts *facts)
{
    struct hf__teller teller = {.fn = audit_facts_add, .data = facts};
    struct fence_words issuer = {.count = 0};
    struct hf_error err;

    if (fences->named.count > 0 &&
        fence_find_issuer(url != NULL ? url : "file:", &issuer, &err) != HF_OK)
        failed(&err, &teller);
    for (size_t i = 0; i < fences->named.count; i++) {
        struct fence_report report = {
            .limit_ms = LIMIT_MS, .found = found, .failed = failed, .data = &teller};
        struct resource resource;
        struct cli_shown shown;

        read_resource(fences, fences->named.items[i], &resource);
        teller.where = resource.target.key != NULL ? resource.target.key
                                                   : cli_shown(&shown, fences->named.items[i]);
        if (fence_inspect(&resource.target, &issuer, &report) == 0 &&
            resource.target.store_url != NULL)
            tell_durability(resource.target.store_url, &teller);
        explicit_bzero(&resource, sizeof resource);
    }
}
