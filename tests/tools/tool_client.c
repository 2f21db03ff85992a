/* tool_client.c - a client that does what it is told, line by line, for tests that need connections
 * and leases to live on between two steps.
 *
 *   open URL | readonly URL | close | fork (a child that closes the store and ends)
 *   acquire LEASE NAME TTL_MS WAIT_MS [kept|detached|free]
 *   any LEASE WAIT_MS NAME... (answers the token and the name)
 *   renew LEASE TTL_MS | release LEASE | leave LEASE | lost LEASE | left LEASE
 *   adopt LEASE NAME OWNER TOKEN | owner LEASE
 *   status NAME | list PREFIX|- | pairs COUNT NAME | end REASON (a quarantine)
 *   put LEASE KEY VALUE [KEEP_MS] (with HF_OK the warning, if there is one)
 *   get NAME KEY | records NAME PREFIX|-
 *   break NAME TOKEN [now]
 *   crowd COUNT NAME TTL_MS (takes NAME.0 and so on, kept) | held (how many of them are)
 *
 * Each is answered by one line: "ok ..." or the status and the error's text. */
#include <holdfast/repair.h>
#include <holdfast/record.h>
#include <holdfast/several.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEASES_MAX     64
#define LINE_MAX_BYTES 4096
#define CROWD_MAX      5000
#define VALUE_SHOWN    60

static struct hf_store *store;
static struct hf_lease *leases[LEASES_MAX];
static struct hf_lease *crowd[CROWD_MAX];
static size_t crowd_count;

static void say(enum hf_status status, const struct hf_error *err)
{
    if (status == HF_OK)
        puts("ok");
    else
        printf("%s retry=%lld %s\n", hf_status_name(status), (long long)err->retry_after_ms,
               err->text);
}

static bool show(const struct hf_lock_info *info, void *data)
{
    (void)data;
    printf(
        " [%s held=%d token=%llu label=%s left=%lld age=%lld waiters=%llu foreign=%d detached=%d]",
        info->name, info->held, (unsigned long long)info->token, info->label,
        (long long)info->remaining_ms, (long long)info->age_ms, (unsigned long long)info->waiters,
        info->foreign, info->detached);
    return true;
}

static void acquire(char **word, size_t count)
{
    struct hf_acquire_options options = {.size = sizeof options, .no_keeper = true};
    struct hf_error err;
    struct hf_lease *lease;
    enum hf_status status;

    options.ttl_ms = (uint32_t)strtoul(word[3], NULL, 10);
    options.wait_ms = strtoll(word[4], NULL, 10);
    if (count > 5 && strcmp(word[5], "kept") == 0)
        options.no_keeper = false;
    if (count > 5 && strcmp(word[5], "detached") == 0)
        options.detached = true;
    status = hf_acquire(store, word[2], &options, &lease, &err);
    if (status != HF_OK) {
        say(status, &err);
        return;
    }
    leases[strtoul(word[1], NULL, 10) % LEASES_MAX] = lease;
    printf("ok %llu left=%lld\n", (unsigned long long)hf_lease_token(lease),
           (long long)hf_lease_remaining_ms(lease));
}

static void take_any(char **word, size_t count)
{
    struct hf_acquire_options options = {
        .size = sizeof options, .no_keeper = true, .wait_ms = strtoll(word[2], NULL, 10)};
    struct hf_lease **lease = &leases[strtoul(word[1], NULL, 10) % LEASES_MAX];
    struct hf_error err;
    size_t which;
    enum hf_status status = hf_acquire_any(store, (const char *const *)word + 3, count - 3,
                                           &options, lease, &which, &err);

    if (status == HF_OK)
        printf("ok %llu %s\n", (unsigned long long)hf_lease_token(*lease), word[3 + which]);
    else
        say(status, &err);
}

static void adopt(char **word)
{
    struct hf_error err;
    struct hf_lease *lease;
    enum hf_status status =
        hf_adopt(store, word[2], word[3], strtoull(word[4], NULL, 10), &lease, &err);

    if (status != HF_OK) {
        say(status, &err);
        return;
    }
    leases[strtoul(word[1], NULL, 10) % LEASES_MAX] = lease;
    printf("ok %llu left=%lld ttl=%u\n", (unsigned long long)hf_lease_token(lease),
           (long long)hf_lease_remaining_ms(lease), hf_lease_ttl_ms(lease));
}

/* Takes and releases the lock over and over; the tokens have to rise. */
static void pairs(char **word)
{
    struct hf_acquire_options options = {.size = sizeof options, .no_keeper = true};
    unsigned long count = strtoul(word[1], NULL, 10);
    uint64_t last = 0;
    struct hf_error err;

    for (unsigned long i = 0; i < count; i++) {
        struct hf_lease *lease;
        enum hf_status status = hf_acquire(store, word[2], &options, &lease, &err);
        uint64_t token;

        if (status != HF_OK) {
            say(status, &err);
            return;
        }
        token = hf_lease_token(lease);
        status = hf_release(lease, &err);
        if (status != HF_OK || token <= last) {
            say(status != HF_OK ? status : HF_CORRUPT, &err);
            return;
        }
        last = token;
    }
    printf("ok %llu\n", (unsigned long long)last);
}

static void take_crowd(char **word)
{
    struct hf_acquire_options options = {.size = sizeof options};
    unsigned long count = strtoul(word[1], NULL, 10);
    struct hf_error err;

    options.ttl_ms = (uint32_t)strtoul(word[3], NULL, 10);
    for (unsigned long i = 0; i < count && crowd_count < CROWD_MAX; i++) {
        char name[HF_NAME_MAX + 1];
        enum hf_status status;

        (void)snprintf(name, sizeof name, "%.100s.%lu", word[2], i);
        status = hf_acquire(store, name, &options, &crowd[crowd_count], &err);
        if (status != HF_OK) {
            say(status, &err);
            return;
        }
        crowd_count++;
    }
    printf("ok %zu\n", crowd_count);
}

static void count_crowd(void)
{
    size_t held = 0;

    for (size_t i = 0; i < crowd_count; i++)
        held += hf_lease_loss(crowd[i]) == HF_LOSS_NONE;
    printf("ok %zu\n", held);
}

static void put(struct hf_lease *lease, char **word, size_t count)
{
    struct hf_error err = {0};
    int64_t keep_ms = count > 4 ? strtoll(word[4], NULL, 10) : 0;
    enum hf_status status;

    if (lease == NULL) {
        puts("no such lease");
        return;
    }
    status = hf_record_put(lease, word[2], word[3], strlen(word[3]), keep_ms, &err);
    printf("%s%s%s\n", status == HF_OK ? "ok" : hf_status_name(status),
           err.text[0] != '\0' ? " " : "", err.text);
}

static bool show_record(const struct hf_record *record, void *data)
{
    (void)data;
    printf(" [%s=%.*s token=%llu number=%llu until=%lld]", record->key,
           record->value_len < VALUE_SHOWN ? (int)record->value_len : VALUE_SHOWN,
           (const char *)record->value, (unsigned long long)record->token,
           (unsigned long long)record->number, (long long)record->until_ms);
    return true;
}

static void read_records(char **word)
{
    struct hf_error err;
    enum hf_status status;
    struct hf_record *record = NULL;
    int64_t now_ms = 0;

    printf("ok");
    if (word[0][0] == 'g')
        status = hf_record_get(store, word[1], word[2], &record, &now_ms, &err);
    else
        status = hf_record_list(store, word[1], strcmp(word[2], "-") == 0 ? "" : word[2],
                                show_record, NULL, &err);
    if (record != NULL)
        (void)show_record(record, NULL);
    hf_record_free(record);
    if (status != HF_OK)
        printf(" %s %s", hf_status_name(status), err.text);
    else if (word[0][0] == 'g')
        printf(" now=%lld", (long long)now_ms);
    puts("");
}

static void break_hold(char **word, size_t count)
{
    struct hf_break_options options = {
        .size = sizeof options, .label = "breaker", .reason = "a test", .now = count > 3};
    struct hf_broken broken;
    struct hf_error err;
    enum hf_status status =
        hf_break(store, word[1], strtoull(word[2], NULL, 10), &options, &broken, &err);

    if (status != HF_OK)
        say(status, &err);
    else
        printf("ok left=%lld label=%s detached=%d foreign=%d again=%d\n",
               (long long)broken.remaining_ms, broken.label, broken.detached, broken.foreign,
               broken.again);
}

/* Why it was lost, and by whom it was broken. */
static void tell_loss(const struct hf_lease *lease)
{
    enum hf_loss loss = hf_lease_loss(lease);
    struct hf_revocation revocation;

    printf("ok %d %s", (int)loss, hf_loss_text(loss));
    if (hf_lease_revocation(lease, &revocation))
        printf(" by %s: %s", revocation.by, revocation.reason);
    puts("");
}

static void on_lease(const char *verb, struct hf_lease **slot, char **word)
{
    struct hf_lease *lease = *slot;
    struct hf_error err = {0};

    if (lease == NULL) {
        puts("no such lease");
    } else if (strcmp(verb, "renew") == 0) {
        say(hf_renew(lease, (uint32_t)strtoul(word[2], NULL, 10), &err), &err);
    } else if (strcmp(verb, "release") == 0) {
        *slot = NULL;
        say(hf_release(lease, &err), &err);
    } else if (strcmp(verb, "leave") == 0) {
        *slot = NULL;
        hf_leave(lease);
        puts("ok");
    } else if (strcmp(verb, "lost") == 0) {
        tell_loss(lease);
    } else if (strcmp(verb, "owner") == 0) {
        printf("ok %s\n", hf_lease_owner(lease));
    } else {
        printf("ok %lld\n", (long long)hf_lease_remaining_ms(lease));
    }
}

static void obey(char **word, size_t count)
{
    struct hf_error err;
    enum hf_status status;

    if (strcmp(word[0], "open") == 0 && count > 1) {
        say(hf_open(word[1], &store, &err), &err);
    } else if (strcmp(word[0], "readonly") == 0 && count > 1) {
        say(hf_open_readonly(word[1], &store, &err), &err);
    } else if (strcmp(word[0], "close") == 0) {
        hf_close(store);
        store = NULL;
        puts("ok");
    } else if (store == NULL) {
        puts("no store is open");
    } else if (strcmp(word[0], "acquire") == 0 && count > 4) {
        acquire(word, count);
    } else if (strcmp(word[0], "any") == 0 && count > 3) {
        take_any(word, count);
    } else if (strcmp(word[0], "adopt") == 0 && count > 4) {
        adopt(word);
    } else if (strcmp(word[0], "fork") == 0) {
        pid_t child = fork();

        if (child == 0) {
            hf_close(store);
            _exit(0);
        }
        (void)waitpid(child, NULL, 0);
        puts("ok");
    } else if (strcmp(word[0], "put") == 0 && count > 3) {
        put(leases[strtoul(word[1], NULL, 10) % LEASES_MAX], word, count);
    } else if ((strcmp(word[0], "get") == 0 || strcmp(word[0], "records") == 0) && count > 2) {
        read_records(word);
    } else if (strcmp(word[0], "pairs") == 0 && count > 2) {
        pairs(word);
    } else if (strcmp(word[0], "end") == 0 && count > 1) {
        status = hf_end_quarantine(store, word[1], &err);
        printf("%s %s\n", status == HF_OK ? "ok" : hf_status_name(status), err.text);
    } else if (strcmp(word[0], "break") == 0 && count > 2) {
        break_hold(word, count);
    } else if (strcmp(word[0], "crowd") == 0 && count > 3) {
        take_crowd(word);
    } else if (strcmp(word[0], "held") == 0) {
        count_crowd();
    } else if (strcmp(word[0], "status") == 0 || strcmp(word[0], "list") == 0) {
        const char *name = count > 1 && strcmp(word[1], "-") != 0 ? word[1] : "";

        printf("ok");
        status = word[0][0] == 's' ? hf_inspect(store, name, show, NULL, &err)
                                   : hf_list(store, name, show, NULL, &err);
        if (status != HF_OK)
            printf(" %s %s", hf_status_name(status), err.text);
        puts("");
    } else if (count > 1) {
        word[count] = "0";
        on_lease(word[0], &leases[strtoul(word[1], NULL, 10) % LEASES_MAX], word);
    } else {
        puts("what?");
    }
}

int main(void)
{
    char line[LINE_MAX_BYTES];

    while (fgets(line, sizeof line, stdin) != NULL) {
        char *word[16] = {NULL};
        char *save;
        size_t count = 0;

        for (char *w = strtok_r(line, " \n", &save); w != NULL && count < 14;
             w = strtok_r(NULL, " \n", &save))
            word[count++] = w;
        if (count > 0)
            obey(word, count);
        (void)fflush(stdout);
    }
    return 0;
}
