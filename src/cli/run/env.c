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

#include <inttypes.h>
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

/* Ours to set, or to take away. An owner belongs to a detached lease of another name. */
static const char *const ours[] = {"HOLDFAST_NAME",    "HOLDFAST_TOKEN", "HOLDFAST_STORE",
                                   "HOLDFAST_LOST_FD", "HOLDFAST_HELD",  "HOLDFAST_STORE_FD",
                                   "HOLDFAST_OWNER"};

static bool next_entry(const char **list, struct entry *entry);
static int inherited_pipe(const struct entry *entry);
static char *held_list(const struct run_job *job);
static bool is_ours(const char *variable);
static bool is_given(const struct run_job *job, const char *variable);
static char *assign(const char *variable, const char *value);

bool run_held_find(struct hf_store *store, const char *name, struct run_held *held)
{
    const char *list = secure_getenv("HOLDFAST_HELD");
    struct entry entry;

    while (list != NULL && next_entry(&list, &entry)) {
        struct hf_lease *lease;
        bool valid;

        if (entry.field[INODE] == NULL || strcmp(entry.field[STORE], hf_store_url(store)) != 0 ||
            strcmp(entry.field[NAME], name) != 0)
            continue;
        if (hf_adopt(store, name, entry.field[OWNER], entry.token, &lease, NULL) != HF_OK)
            continue;
        valid = hf_lease_remaining_ms(lease) > 0;
        hf_leave(lease);
        if (!valid)
            continue;
        held->token = entry.token;
        held->lost_fd = inherited_pipe(&entry);
        return true;
    }
    return false;
}

char **run_environment(const struct run_job *job, const struct run_held *held)
{
    char token[24];
    char lost_fd[12], store_fd[12];
    int fd = job->lease != NULL ? job->lost_pipe[0] : held->lost_fd;
    char *list = held_list(job);
    const char *const values[] = {
        job->options->name,       token, hf_store_url(job->store),
        fd >= 0 ? lost_fd : NULL, list,  job->store_fd >= 0 ? store_fd : NULL};
    size_t count = 0;
    char **out;
    bool good;

    while (environ[count] != NULL)
        count++;
    for (const char *const *more = job->variables; more != NULL && *more != NULL; more++)
        count++;
    out = calloc(count + sizeof ours / sizeof ours[0] + 1, sizeof *out);
    good = out != NULL && list != NULL;
    count = 0;
    for (char **variable = environ; good && *variable != NULL; variable++) {
        if (!is_ours(*variable) && !is_given(job, *variable))
            out[count++] = *variable;
    }
    for (const char *const *more = job->variables; good && more != NULL && *more != NULL; more++)
        out[count++] = (char *)*more;
    (void)snprintf(token, sizeof token, "%" PRIu64,
                   job->lease != NULL ? hf_lease_token(job->lease) : held->token);
    (void)snprintf(lost_fd, sizeof lost_fd, "%d", fd);
    (void)snprintf(store_fd, sizeof store_fd, "%d", job->store_fd);
    for (size_t i = 0; good && i < sizeof values / sizeof values[0]; i++) {
        if (values[i] != NULL)
            good = (out[count++] = assign(ours[i], values[i])) != NULL;
    }
    free(list);
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

/* The entry for the lease of this job; false if it does not fit. */
static bool write_entry(const struct run_job *job, char *out, size_t size)
{
    char store[3 * STORE_URL_MAX + 1];
    char name[3 * HF_NAME_MAX + 1];
    struct stat st;
    int len;

    if (!hf__url_encode(store, sizeof store, hf_store_url(job->store)) ||
        !hf__url_encode(name, sizeof name, job->options->name) || fstat(job->lost_pipe[0], &st) < 0)
        return false;
    len = snprintf(out, size, "%s,%s,%s,%" PRIu64 ",%d,%" PRIu64, store, name,
                   hf_lease_owner(job->lease), hf_lease_token(job->lease), job->lost_pipe[0],
                   (uint64_t)st.st_ino);
    return len > 0 && (size_t)len < size;
}

/* What we inherited, and our own lock last. */
static char *held_list(const struct run_job *job)
{
    const char *above = secure_getenv("HOLDFAST_HELD");
    char own[ENTRY_MAX] = "";
    size_t own_len;
    char *list = NULL;

    if (above == NULL)
        above = "";
    if (job->lease != NULL && !write_entry(job, own, sizeof own))
        return NULL;
    own_len = strlen(own);
    while (strlen(above) + own_len + 2 > HELD_MAX) {
        above += strspn(above, " ");
        above += strcspn(above, " ");
    }
    if (asprintf(&list, "%s%s%s", above, above[0] != '\0' && own_len ? " " : "", own) < 0)
        return NULL;
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
