/* audit.h - what `doctor` looks at and `--require` insists on: facts that are kept, fences that are
 * named, and the judgement of src/core/audit.h on both. */
#ifndef HF_CLI_AUDIT_AUDIT_H
#define HF_CLI_AUDIT_AUDIT_H

#include "cli/cli.h"
#include "cli/say/stderr.h"
#include "core/audit.h"

/* Facts, copied: facts.c */
struct audit_facts {
    struct hf_fact *items;
    size_t count;
    size_t capacity;
    bool cut; /* out of memory, or too many: some are missing */
};
/* A hf_fact_fn, whose data is the struct. */
bool audit_facts_add(const struct hf_fact *fact, void *facts);
void audit_facts_clear(struct audit_facts *facts);

/* What they mean: facts.c */
struct audit_findings {
    struct hf__finding *items; /* point into the facts */
    size_t count;
};
/* False: out of memory. */
bool audit_judge(const struct audit_facts *facts, struct audit_findings *out);
void audit_findings_clear(struct audit_findings *findings);

/* The fences that --fence and --db name: fences.c */
struct audit_fences {
    struct cli_words named;
    char db[CLI_URL_SIZE];
    bool has_db;
};

/* Their lines in the table of a command. */
#define AUDIT_FENCE_OPTIONS(fences)                                                                \
    {0,                                                                                            \
     "fence",                                                                                      \
     CLI_WORDS,                                                                                    \
     "RESOURCE",                                                                                   \
     "what the job writes to: a FILE, URL#KEY, or a TABLE of --db; may be repeated",               \
     NULL,                                                                                         \
     &(fences)->named,                                                                             \
     NULL},                                                                                        \
    {                                                                                              \
        0, "db", CLI_URL, "URL", "the database of tables that --fence names", NULL, (fences)->db,  \
            &(fences)->has_db                                                                      \
    }

/* 0, or EXIT_HF_USAGE after a message. */
int audit_fences_check(const struct cli_command *command, const struct audit_fences *fences);
/* How many there are becomes a fact. */
void audit_fences_count(const struct audit_fences *fences, struct audit_facts *facts);
/* Looks at each of them, and at whether it follows the store at url; what is found becomes
 * facts. */
void audit_fences_tell(const struct audit_fences *fences, const char *url,
                       struct audit_facts *facts);

/* --require: require.c */
struct audit_require {
    int what; /* 0: nothing is required */
    struct audit_fences fences;
    char judged[128]; /* the incarnation that was found fit; "": none yet */
};
extern const char *const audit_require_words[];

#define AUDIT_REQUIRE_OPTIONS(require)                                                             \
    {0,                                                                                            \
     "require",                                                                                    \
     CLI_CHOICE,                                                                                   \
     "WHAT",                                                                                       \
     "refuse unless store and fences are fit for it: correctness, or nothing (default)",           \
     audit_require_words,                                                                          \
     &(require)->what,                                                                             \
     NULL},                                                                                        \
        AUDIT_FENCE_OPTIONS(&(require)->fences)

/* 0, EXIT_HF_USAGE, or EXIT_HF_UNFIT if no fence is named; after a message. */
int audit_require_check(const struct cli_command *command, const struct audit_require *require);
/* The lock that needs it. */
struct audit_lock {
    const char *name;
    const char *url; /* of its store */
    uint32_t ttl_ms; /* of its lease, which has to be renewed meanwhile; 0: it is not held yet */
    struct cli_stderr *writer; /* hears of what was found */
};
/* Whether the store of the lock, as it is now, is fit for what is required; looked at once per
 * incarnation, for 5s at most, or until a renewal would be due. 0; else the exit code, after a
 * message, and why says what was found. */
enum { AUDIT_WHY_SIZE = CLI_LINE_MAX - 100 };
int audit_require_met(struct audit_require *require, const struct audit_lock *lock,
                      char why[AUDIT_WHY_SIZE]);

#endif /* HF_CLI_AUDIT_AUDIT_H */
