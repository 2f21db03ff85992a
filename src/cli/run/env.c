/* env.c - the environment of CMD, and the locks that it says are held.
 *
 * HOLDFAST_HELD lists the locks that this tree of processes holds, one entry per lock, the
 * outermost first, with a blank between two:
 *
 *     store,name,owner,token,fd,inode
 *
 * The fields are percent-encoded, so that neither a blank nor a comma can be inside of one. store
 * is the url without its password; fd is the number that CMD has as HOLDFAST_LOST_FD, and inode
 * tells whether a descendant still has the same pipe there. */
#include "cli/run/run.h"

#include "base/base.h"
#include "cli/say/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HELD_MAX = 65536,     /* bytes of HOLDFAST_HELD; the outermost entries go first */
    STORE_URL_MAX = 1024, /* bytes of a store's url */
    ENTRY_MAX = 3 * (STORE_URL_MAX + HF_NAME_MAX) + 128
};

enum field { STORE, NAME, OWNER, TOKEN, LOST_FD, INODE, FIELDS };

/* One entry, taken apart. */
struct entry {
    char text[ENTRY_MAX];
    char *field[FIELDS];
    uint64_t token;
};

/* Ours to set, or to remove: an inherited owner, for instance, is that of another lease. */
static const char *const ours[] = {"HOLDFAST_NAME",    "HOLDFAST_TOKEN", "HOLDFAST_STORE",
                                   "HOLDFAST_LOST_FD", "HOLDFAST_HELD",  "HOLDFAST_STORE_FD",
                                   "HOLDFAST_TOKENS",  "HOLDFAST_SLOT",  "HOLDFAST_OWNER",
                                   "HOLDFAST_OWNERS"};

static bool next_entry(const char **list, struct entry *entry);
static int inherited_pipe(const struct entry *entry);
static char *held_list(const struct run_job *job);
static bool is_ours(const char *variable);
static bool is_given(const struct run_job *job, const char *variable);
static char *assign(const char *variable, const char *value);

/* Whether an entry is about this store, and true. */
static bool is_held(struct hf_store *store, const struct entry *entry)
{
    struct hf_lease *lease;
    bool valid;

    if (entry->field[INODE] == NULL || strcmp(entry->field[STORE], hf_store_url(store)) != 0 ||
        hf_adopt(store, entry->field[NAME], entry->field[OWNER], entry->token, &lease, NULL) !=
            HF_OK)
        return false;
    valid = hf_lease_remaining_ms(lease) > 0;
    hf_leave(lease);
    return valid;
}

bool run_held_find(struct hf_store *store, const char *name, struct run_held *held)
{
    const char *list = secure_getenv("HOLDFAST_HELD");
    struct entry entry;

    while (list != NULL && next_entry(&list, &entry)) {
        if (entry.field[INODE] == NULL || strcmp(entry.field[NAME], name) != 0 ||
            !is_held(store, &entry))
            continue;
        held->name = name;
        held->token = entry.token;
        held->lost_fd = inherited_pipe(&entry);
        return true;
    }
    return false;
}

void run_held_last(struct hf_store *store, char out[HF_NAME_MAX + 1])
{
    const char *list = secure_getenv("HOLDFAST_HELD");
    struct entry entry;

    out[0] = '\0';
    while (list != NULL && next_entry(&list, &entry))
        if (entry.field[INODE] != NULL && strlen(entry.field[NAME]) <= HF_NAME_MAX &&
            strcmp(entry.field[NAME], out) > 0 && is_held(store, &entry))
            (void)stpcpy(out, entry.field[NAME]);
}

/* HOLDFAST_TOKENS: what we took, and what we rely on above us. NULL: out of memory. */
static char *tokens_of(const struct run_job *job)
{
    struct cli_token tokens[2 * HF_SEVERAL_MAX];
    size_t count = 0;

    for (size_t i = 0; i < job->hold_count; i++)
        tokens[count++] = (struct cli_token){job->holds[i].name, job->holds[i].token};
    for (size_t i = 0; i < job->take.taken; i++)
        tokens[count++] = (struct cli_token){hf_lease_name(job->take.leases[i]),
                                             hf_lease_token(job->take.leases[i])};
    return cli_tokens_text(tokens, count);
}

/* Of the lock that options->name is. */
static uint64_t token_of(const struct run_job *job)
{
    for (size_t i = 0; i < job->hold_count; i++)
        if (strcmp(job->holds[i].name, job->options->name) == 0)
            return job->holds[i].token;
    return hf_lease_token(job->lease);
}

char **run_environment(const struct run_job *job)
{
    char token[24];
    char lost_fd[12], store_fd[12], slot[24];
    int fd = job->lease != NULL ? job->lost_pipe[0] : job->held->lost_fd;
    char *list = held_list(job);
    char *tokens = tokens_of(job);
    uint64_t number = 0;
    bool slotted = take_slot_of(&job->options->names, job->options->name, &number);
    const char *const values[] = {job->options->name,
                                  token,
                                  hf_store_url(job->store),
                                  fd >= 0 ? lost_fd : NULL,
                                  list,
                                  job->store_fd >= 0 ? store_fd : NULL,
                                  tokens,
                                  slotted ? slot : NULL};
    size_t count = 0;
    char **out;
    bool good;

    while (environ[count] != NULL)
        count++;
    for (const char *const *more = job->variables; more != NULL && *more != NULL; more++)
        count++;
    out = calloc(count + sizeof ours / sizeof ours[0] + 1, sizeof *out);
    good = out != NULL && list != NULL && tokens != NULL;
    count = 0;
    for (char **variable = environ; good && *variable != NULL; variable++) {
        if (!is_ours(*variable) && !is_given(job, *variable))
            out[count++] = *variable;
    }
    for (const char *const *more = job->variables; good && more != NULL && *more != NULL; more++)
        out[count++] = (char *)*more;
    (void)snprintf(token, sizeof token, "%" PRIu64, token_of(job));
    (void)snprintf(lost_fd, sizeof lost_fd, "%d", fd);
    (void)snprintf(store_fd, sizeof store_fd, "%d", job->store_fd);
    (void)snprintf(slot, sizeof slot, "%" PRIu64, number);
    for (size_t i = 0; good && i < sizeof values / sizeof values[0]; i++) {
        if (values[i] != NULL)
            good = (out[count++] = assign(ours[i], values[i])) != NULL;
    }
    free(list);
    free(tokens);
    if (good)
        return out;
    run_environment_clear(out);
    return NULL;
}

/* What is not ours belongs to environ. */
void run_environment_clear(char **environment)
{
    for (char **variable = environment; variable != NULL && *variable != NULL; variable++) {
        if (is_ours(*variable))
            free(*variable);
    }
    free(environment);
}

/* Takes the next entry off the list. Sets field[INODE] to NULL if it makes no sense; false at the
 * end. */
static bool next_entry(const char **list, struct entry *entry)
{
    size_t len;
    const char *from;
    char *at;

    *list += strspn(*list, " ");
    len = strcspn(*list, " ");
    if (len == 0)
        return false;
    entry->field[INODE] = NULL;
    from = *list;
    *list += len;
    if (len >= sizeof entry->text)
        return true;
    memcpy(entry->text, from, len);
    entry->text[len] = '\0';
    at = entry->text;
    for (int i = 0; i < FIELDS; i++) {
        char *field = strsep(&at, ",");

        if (field == NULL || !hf__url_decode(field)) {
            entry->field[INODE] = NULL;
            return true;
        }
        entry->field[i] = field;
    }
    if (!hf__parse_u64(entry->field[TOKEN], &entry->token))
        entry->field[INODE] = NULL;
    return true;
}

/* The descriptor of an entry, if we have that very pipe. */
static int inherited_pipe(const struct entry *entry)
{
    uint64_t fd, inode;
    struct stat st;

    if (!hf__parse_u64(entry->field[LOST_FD], &fd) || fd > INT32_MAX ||
        !hf__parse_u64(entry->field[INODE], &inode))
        return -1;
    if (fstat((int)fd, &st) < 0 || !S_ISFIFO(st.st_mode) || st.st_ino != inode)
        return -1;
    return (int)fd;
}

/* The entry for a lease of this job; false if it does not fit. */
static bool write_entry(const struct run_job *job, const struct hf_lease *lease, FILE *out)
{
    char store[3 * STORE_URL_MAX + 1];
    char name[3 * HF_NAME_MAX + 1];
    struct stat st;

    if (!hf__url_encode(store, sizeof store, hf_store_url(job->store)) ||
        !hf__url_encode(name, sizeof name, hf_lease_name(lease)) ||
        fstat(job->lost_pipe[0], &st) < 0)
        return false;
    return fprintf(out, "%s,%s,%s,%" PRIu64 ",%d,%" PRIu64, store, name, hf_lease_owner(lease),
                   hf_lease_token(lease), job->lost_pipe[0], (uint64_t)st.st_ino) > 0;
}

/* Our own locks, each with a blank before it. NULL: out of memory, or one does not fit. */
static char *own_list(const struct run_job *job)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    bool good = out != NULL;

    for (size_t i = 0; good && i < job->take.taken; i++)
        good = fputc(' ', out) != EOF && write_entry(job, job->take.leases[i], out);
    if (out != NULL && fclose(out) == 0 && good)
        return text;
    free(text);
    return NULL;
}

/* What we inherited, and our own locks last. */
static char *held_list(const struct run_job *job)
{
    const char *above = secure_getenv("HOLDFAST_HELD");
    char *own = own_list(job);
    char *list = NULL;

    if (own == NULL)
        return NULL;
    if (above == NULL)
        above = "";
    while (above[0] != '\0' && strlen(above) + strlen(own) + 1 > HELD_MAX) {
        above += strspn(above, " ");
        above += strcspn(above, " ");
    }
    if (asprintf(&list, "%s%s", above, above[0] != '\0' ? own : own + strspn(own, " ")) < 0)
        list = NULL;
    free(own);
    return list;
}

static bool is_ours(const char *variable)
{
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        size_t len = strlen(ours[i]);

        if (strncmp(variable, ours[i], len) == 0 && variable[len] == '=')
            return true;
    }
    return false;
}

/* The job gives another value. */
static bool is_given(const struct run_job *job, const char *variable)
{
    size_t len = strcspn(variable, "=") + 1;

    for (const char *const *more = job->variables; more != NULL && *more != NULL; more++) {
        if (strncmp(variable, *more, len) == 0)
            return true;
    }
    return false;
}

static char *assign(const char *variable, const char *value)
{
    char *out = NULL;

    return asprintf(&out, "%s=%s", variable, value) < 0 ? NULL : out;
}
