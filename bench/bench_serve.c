/* bench_serve.c - the server beside what it stands in front of: requests, pairs, a line of waiters.
 *
 *   bench_serve refused SOCKET              a refused request against a bare echo of the same bytes
 *   bench_serve pair SOCKET URL             acquire + release against a direct pair + two refused
 *   bench_serve gateway SOCKET PORT         the same against etcd's own gateway: four requests
 *   bench_serve handover SOCKET URL COUNT   a line of waiters through the server, and of threads
 *   bench_serve crowd SOCKET PID COUNT      memory, and renewals, while so many wait
 *
 * Prints "name value" lines, for serve.sh. */
#include "compare.h"
#include "link.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { WAITERS_MAX = 2000, PAGES = 10, RENEWALS = 2000 };

static void new_owner(char out[HF_OWNER_LEN + 1])
{
    static atomic_ulong count;
    static unsigned long seed;

    if (seed == 0)
        seed = (unsigned long)(now_us() * 1e3) ^ ((unsigned long)getpid() << 40);
    (void)snprintf(out, HF_OWNER_LEN + 1, "%016lx%016lx", seed, atomic_fetch_add(&count, 1));
}

/* The text between the quotes behind key. */
static void field(const struct link *link, const char *key, char *out, size_t size)
{
    const char *at = strstr(link->answer, key);

    at = at != NULL ? strchr(at + strlen(key), '"') : NULL;
    if (at == NULL)
        fail(link->answer);
    (void)snprintf(out, size, "%.*s", (int)strcspn(at + 1, "\""), at + 1);
}

/* Takes a lock and says with which owner and token. */
static void take(struct link *link, const char *name, char owner[HF_OWNER_LEN + 1], char token[32])
{
    char body[256];

    new_owner(owner);
    (void)snprintf(body, sizeof body, "{\"name\": \"%s\", \"owner\": \"%s\", \"ttl_ms\": 30000%s}",
                   name, owner, token != NULL ? ", \"wait_ms\": 120000" : "");
    must_ask(link, "/v1/acquire", body);
    if (token != NULL)
        field(link, "\"token\": ", token, 32);
}

static void give_back(struct link *link, const char *name, const char *owner)
{
    char body[256];

    (void)snprintf(body, sizeof body, "{\"name\": \"%s\", \"owner\": \"%s\"}", name, owner);
    must_ask(link, "/v1/release", body);
}

/* What is compared. */
struct world {
    struct link server, echo, gateway;
    struct hf_store *store;
};

static const char refused_body[] = "{\"name\": \"bench\", \"owner\": \"not one\"}";

static void refused(void *data)
{
    ask(&((struct world *)data)->server, "/v1/release", refused_body);
}

static void echoed(void *data)
{
    ask(&((struct world *)data)->echo, "/v1/release", refused_body);
}

static void *echo_back(void *data)
{
    struct link *link = data;
    char request[MESSAGE_SIZE];

    while (recv(link->fd, request, sizeof request, 0) > 0)
        send_all(link, link->answer, link->len);
    return NULL;
}

/* A process with a thread for its connection, which answers with the same bytes as the server. */
static void start_echo(struct world *world)
{
    int ends[2];

    refused(world);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        fail("no socket pair");
    if (fork() == 0) {
        pthread_t thread;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[0]);
        world->server.fd = ends[1];
        pthread_create(&thread, NULL, echo_back, &world->server);
        pthread_join(thread, NULL);
        _exit(0);
    }
    (void)close(ends[1]);
    world->echo.fd = ends[0];
}

static void pair_by_server(void *data)
{
    struct world *world = data;
    char owner[HF_OWNER_LEN + 1];

    take(&world->server, "bench", owner, NULL);
    give_back(&world->server, "bench", owner);
}

static void pair_and_refused(void *data)
{
    const struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 30000, .detached = true};
    struct world *world = data;
    struct hf_lease *lease;
    struct hf_error err;

    must(hf_acquire(world->store, "bench", &options, &lease, &err), &err);
    must(hf_release(lease, &err), &err);
    refused(world);
    refused(world);
}

static void pair_by_gateway(void *data)
{
    struct link *link = &((struct world *)data)->gateway;
    char body[512], id[32], key[256];

    must_ask(link, "/v3/lease/grant", "{\"TTL\": \"30\"}");
    field(link, "\"ID\":", id, sizeof id);
    (void)snprintf(body, sizeof body, "{\"name\": \"YmVuY2g=\", \"lease\": \"%s\"}", id);
    must_ask(link, "/v3/lock/lock", body);
    field(link, "\"key\":", key, sizeof key);
    (void)snprintf(body, sizeof body, "{\"key\": \"%s\"}", key);
    must_ask(link, "/v3/lock/unlock", body);
    (void)snprintf(body, sizeof body, "{\"ID\": \"%s\"}", id);
    must_ask(link, "/v3/lease/revoke", body);
}

static void print(const struct comparison *c)
{
    struct compared result = compare(c);

    printf("plain_us %.2f\nours_us %.2f\nratio %.3f\n", result.plain_us, result.ours_us,
           result.ratio);
}

/* One who waits in the line. */
struct place {
    const char *socket; /* NULL: without a server */
    struct hf_store *store;
    pthread_t thread;
};

static void *stand(void *data)
{
    const struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 30000, .wait_ms = 120000, .detached = true};
    struct place *place = data;
    char owner[HF_OWNER_LEN + 1], token[32];
    struct hf_lease *lease;
    struct hf_error err;

    if (place->socket == NULL) {
        must(hf_acquire(place->store, "line", &options, &lease, &err), &err);
        must(hf_release(lease, &err), &err);
    } else {
        struct link *link = malloc(sizeof *link);

        connect_unix(link, place->socket);
        take(link, "line", owner, token);
        give_back(link, "line", owner);
        (void)close(link->fd);
        free(link);
    }
    return NULL;
}

static bool count_waiters(const struct hf_lock_info *info, void *data)
{
    *(uint64_t *)data = info->waiters;
    return false;
}

static void await_waiters(struct hf_store *store, const char *name, uint64_t wanted)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    uint64_t waiters = 0;
    struct hf_error err;

    for (int tries = 0; waiters != wanted; tries++) {
        must(hf_inspect(store, name, count_waiters, &waiters, &err), &err);
        if (tries > 3000)
            fail("the waiters did not line up");
        (void)nanosleep(&pause, NULL);
    }
}

/* Microseconds per hand-over. */
static double hand_over(struct hf_store *store, const char *socket_path, int count)
{
    static struct place places[WAITERS_MAX];
    const struct hf_acquire_options options = {
        .size = sizeof options, .ttl_ms = 60000, .detached = true};
    const struct timespec settle = {.tv_sec = 1};
    struct hf_lease *lease;
    struct hf_error err;
    pthread_attr_t small;
    double start;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    must(hf_acquire(store, "line", &options, &lease, &err), &err);
    for (int i = 0; i < count; i++) {
        places[i] = (struct place){.socket = socket_path, .store = store};
        if (pthread_create(&places[i].thread, &small, stand, &places[i]) != 0)
            fail("no thread");
    }
    await_waiters(store, "line", (uint64_t)count);
    (void)nanosleep(&settle, NULL);
    start = now_us();
    must(hf_release(lease, &err), &err);
    for (int i = 0; i < count; i++)
        pthread_join(places[i].thread, NULL);
    return (now_us() - start) / count;
}

static void measure_handover(struct world *world, const char *socket_path, int count)
{
    double ratios[5];

    for (int i = 0; i < 5; i++) {
        double direct = hand_over(world->store, NULL, count);
        double served = hand_over(world->store, socket_path, count);

        ratios[i] = served / direct;
        printf("direct_us %.1f\nserved_us %.1f\n", direct, served);
    }
    printf("ratio %.3f\n", compare_median(ratios, 5));
}

static double resident_mib(const char *pid)
{
    char path[64], line[256];
    double kib = 0;
    FILE *status;

    (void)snprintf(path, sizeof path, "/proc/%s/status", pid);
    status = fopen(path, "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtod(line + 6, NULL);
    if (status != NULL)
        (void)fclose(status);
    return kib / 1024;
}

static double renewals_p99(struct link *link, const char *owner, const char *token)
{
    static double took[RENEWALS];
    char body[256];

    (void)snprintf(body, sizeof body,
                   "{\"name\": \"crowd\", \"owner\": \"%s\", \"token\": \"%s\", \"ttl_ms\": 60000}",
                   owner, token);
    for (int i = 0; i < RENEWALS; i++) {
        double start = now_us();

        must_ask(link, "/v1/renew", body);
        took[i] = now_us() - start;
    }
    qsort(took, RENEWALS, sizeof *took, compare_doubles);
    return took[RENEWALS * 99 / 100];
}

/* A page that is open: it looks once a second. */
static void *look(void *data)
{
    const struct timespec second = {.tv_sec = 1};
    struct link *link = malloc(sizeof *link);

    connect_unix(link, data);
    for (;;) {
        must_ask(link, "/v1/locks?limit=5", NULL);
        (void)nanosleep(&second, NULL);
    }
    return NULL;
}

static void measure_crowd(struct world *world, char *socket_path, const char *pid, int count)
{
    char owner[HF_OWNER_LEN + 1], waiter[HF_OWNER_LEN + 1], token[32], body[256];
    char request[MESSAGE_SIZE];
    const struct timespec settle = {.tv_sec = 2};
    struct link one;
    pthread_t page;
    double before, idle;

    take(&world->server, "crowd", owner, token);
    idle = renewals_p99(&world->server, owner, token);
    before = resident_mib(pid);
    for (int i = 0; i < count; i++) {
        new_owner(waiter);
        (void)snprintf(body, sizeof body,
                       "{\"name\": \"crowd\", \"owner\": \"%s\", \"ttl_ms\": 30000, \"wait_ms\": "
                       "600000}",
                       waiter);
        connect_unix(&one, socket_path);
        send_all(&one, request, build(request, "/v1/acquire", body));
    }
    await_waiters(world->store, "crowd", (uint64_t)count);
    for (int i = 0; i < PAGES; i++)
        pthread_create(&page, NULL, look, socket_path);
    (void)nanosleep(&settle, NULL);
    printf("more_mib %.1f\n", resident_mib(pid) - before);
    printf("idle_p99_us %.1f\n", idle);
    idle = renewals_p99(&world->server, owner, token) / idle;
    printf("ratio %.3f\n", idle);
}

int main(int argc, char **argv)
{
    static struct world world;
    struct comparison c = {.data = &world, .rounds = 100, .batch = 100};
    struct hf_error err;

    if (argc < 3)
        fail("usage: see the source");
    connect_unix(&world.server, argv[2]);
    if (strcmp(argv[1], "refused") == 0) {
        start_echo(&world);
        c.plain = echoed;
        c.ours = refused;
        print(&c);
    } else if (strcmp(argv[1], "pair") == 0 && argc == 4) {
        must(hf_open(argv[3], &world.store, &err), &err);
        c.plain = pair_and_refused;
        c.ours = pair_by_server;
        print(&c);
    } else if (strcmp(argv[1], "gateway") == 0 && argc == 4) {
        connect_tcp(&world.gateway, atoi(argv[3]));
        c = (struct comparison){pair_by_gateway, pair_by_server, &world, 30, 5};
        print(&c);
    } else if (strcmp(argv[1], "handover") == 0 && argc == 5) {
        must(hf_open(argv[3], &world.store, &err), &err);
        measure_handover(&world, argv[2], atoi(argv[4]));
    } else if (strcmp(argv[1], "crowd") == 0 && argc == 6) {
        must(hf_open(argv[5], &world.store, &err), &err);
        measure_crowd(&world, argv[2], argv[3], atoi(argv[4]));
    } else {
        fail("usage: see the source");
    }
    return 0;
}
