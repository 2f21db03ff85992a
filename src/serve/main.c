/* main.c - holdfast-serve, which `holdfast serve` executes: options, start, signals, end. */
#include "serve/attempts.h"
#include "serve/connection.h"
#include "serve/credentials.h"
#include "serve/inspect.h"
#include "serve/listing.h"
#include "serve/metrics.h"
#include "serve/sockets.h"
#include "serve/stream.h"

#include "base/base.h"
#include "cli/cli.h"

#include <errno.h>
#include <holdfast/store.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ARENAS_MAX = 4,         /* of malloc: a thread for each client must not have one each */
    END_MS = 4500,          /* how long what is under way has when the server is to end */
    OUT_OF_DESCRIPTORS = 50 /* ms until accept is tried again */
};

/* What the command line says. */
struct settings {
    char url[CLI_URL_SIZE]; /* "": none was given */
    const char *listen[SERVE_SOCKETS_MAX];
    struct cli_list listen_list;
    struct cli_list host_list;
    struct cli_list watch_list;
    int64_t max_ttl_ms; /* < 0: none was given */
    const char *new_credential;
    struct serve_options options;
};

static const struct cli_command command = {
    .name = "serve", .arguments = "[options]", .summary = "serve a store over HTTP"};

static struct cli_option option(const char *name, enum cli_option_kind kind, const char *argument,
                                void *target, const char *help)
{
    return (struct cli_option){
        .name = name, .kind = kind, .argument = argument, .target = target, .help = help};
}

static int parse(struct settings *s, int argc, char **argv)
{
    struct serve_options *o = &s->options;
    const struct cli_option options[] = {
        option("store", CLI_URL, "URL", s->url,
               "the store to serve; default: $HOLDFAST_STORE, or else this user's"),
        option("listen", CLI_LIST, "ADDR", &s->listen_list,
               "unix:PATH or tcp:127.0.0.1:7070; may be repeated"),
        option("tokens", CLI_TEXT, "FILE", &o->credentials_file,
               "who may do what; tcp: needs it; read again on HUP"),
        option("new-token", CLI_TEXT, "NAME", &s->new_credential,
               "print a new secret and its line for that file, and exit"),
        option("host", CLI_LIST, "NAME", &s->host_list,
               "another name of this server in requests; may be repeated"),
        option("max-clients", CLI_NUMBER, "N", &o->max_clients,
               "connections at a time; default: 1024"),
        option("max-waiters", CLI_NUMBER, "N", &o->max_waiters,
               "requests that wait for locks; default: 900"),
        option("max-ttl", CLI_DURATION, "DURATION", &s->max_ttl_ms,
               "the longest ttl; default: what the store grants"),
        option("max-wait", CLI_DURATION, "DURATION", &o->max_wait_ms,
               "the longest wait; default: 1h"),
        option("watch", CLI_LIST, "NAME", &s->watch_list,
               "a lock to report in the metrics; up to 100 times"),
        {.name = NULL}};
    const char *operand;
    int parsed = cli_parse_operand(&command, options, argc, argv, &operand);

    if (parsed == 0 && operand != NULL) {
        (void)cli_one_too_many(&command, operand);
        return -1;
    }
    return parsed;
}

/* What the parser does not know. False: it was said. */
static bool check(const struct settings *s)
{
    if (s->max_ttl_ms >= 0 && (s->max_ttl_ms < HF_TTL_MIN_MS || s->max_ttl_ms > HF_TTL_MAX_MS)) {
        (void)cli_usage_error(&command, "--max-ttl: at least %dms and at most 1d", HF_TTL_MIN_MS);
        return false;
    }
    if (s->options.max_clients == 0 || s->options.max_clients > 100000 ||
        s->options.max_waiters > 100000) {
        (void)cli_usage_error(&command, "--max-clients and --max-waiters: at most 100000");
        return false;
    }
    for (size_t i = 0; i < s->watch_list.count; i++)
        if (!hf__name_valid(s->options.watch[i]) || !hf__utf8_valid(s->options.watch[i])) {
            (void)cli_usage_error(&command, "--watch: a lock name has 1 to %d bytes, of UTF-8 here",
                                  HF_NAME_MAX);
            return false;
        }
    return true;
}

static int new_credential(const char *name)
{
    char secret[CREDENTIAL_SECRET_SIZE];
    char hash[2 * CREDENTIAL_HASH_LEN + 1];

    if (!credential_name_valid(name))
        return cli_usage_error(&command,
                               "--new-token: a NAME has letters, digits and ._@-, %d at "
                               "the most",
                               CREDENTIAL_NAME_MAX);
    credential_draw(secret, hash);
    if (isatty(STDOUT_FILENO) == 1)
        cli_error("the secret, which is shown this once, and its line for the file of --tokens:");
    printf("%s\n%s %s look lock metrics\n", secret, name, hash);
    explicit_bzero(secret, sizeof secret);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_HF_INTERNAL;
}

/* Waits, stores and clients need descriptors. */
static void raise_limits(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void read_credentials_again(struct serve *serve)
{
    struct hf_error err;

    if (serve->options.credentials_file == NULL)
        return;
    if (credentials_read(serve->credentials, serve->options.credentials_file, &err) == HF_OK)
        cli_error("the credentials were read again");
    else
        cli_error("%s; the credentials stay as they were", err.text);
}

/* True: the server is to end. */
static bool take_signal(struct serve *serve, int signal_fd)
{
    int number;

    while ((number = cli_pending_signal(signal_fd)) != 0) {
        if (number != SIGHUP)
            return true;
        read_credentials_again(serve);
    }
    return false;
}

static void accept_all(const struct server_socket *one, struct connections *connections)
{
    for (;;) {
        int fd = accept4(one->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0)
            connections_add(connections, fd, one->local);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            hf__sleep_ns(OUT_OF_DESCRIPTORS * HF__NS_PER_MS);
        else if (errno != EINTR && errno != ECONNABORTED)
            return;
        if (fd < 0)
            return;
    }
}

/* Until a signal ends it. */
static void accept_clients(struct serve *serve, const struct server_sockets *sockets, int signal_fd)
{
    struct connections connections;
    struct pollfd fds[SERVE_SOCKETS_MAX + 1];
    const uint64_t one = 1;
    nfds_t count = 0;
    int64_t until_ns;

    connections_init(&connections, serve);
    for (; count < sockets->count; count++)
        fds[count] = (struct pollfd){.fd = sockets->all[count].fd, .events = POLLIN};
    fds[count] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
    do {
        (void)hf__poll_until(fds, count + 1, HF_NEVER);
        for (nfds_t i = 0; i < count; i++)
            if (fds[i].revents != 0)
                accept_all(&sockets->all[i], &connections);
    } while (!take_signal(serve, signal_fd));

    until_ns = hf__now_ns() + END_MS * HF__NS_PER_MS;
    serve->stopping = true;
    (void)!write(serve->stop_fd, &one, sizeof one);
    if (connections_end(&connections, until_ns) && metrics_end(serve->metrics, until_ns)) {
        connections_release(&connections);
        return;
    }
    /* Somebody still waits for the store, and only the store can tell what becomes of that. */
    sockets_close((struct server_sockets *)sockets);
    cli_error("ended with %u requests under way", (unsigned)serve->clients);
    (void)fflush(stderr);
    _exit(EXIT_SUCCESS);
}

static bool make_parts(struct serve *serve)
{
    serve->stop_fd = eventfd(0, EFD_CLOEXEC);
    serve->credentials = serve->credentials != NULL ? serve->credentials : credentials_open();
    serve->attempts = attempts_open();
    serve->listing = listing_open();
    serve->readiness = readiness_open();
    serve->streams = streams_open();
    serve->metrics = metrics_open(serve);
    return serve->stop_fd >= 0 && serve->credentials != NULL && serve->attempts != NULL &&
           serve->listing != NULL && serve->readiness != NULL && serve->streams != NULL &&
           serve->metrics != NULL;
}

static void close_parts(struct serve *serve)
{
    metrics_close(serve->metrics);
    streams_close(serve->streams);
    readiness_close(serve->readiness);
    listing_close(serve->listing);
    attempts_close(serve->attempts);
    credentials_close(serve->credentials);
    if (serve->stop_fd >= 0)
        (void)close(serve->stop_fd);
    hf_close(serve->store);
}

/* Opens the store and learns what it can. 0, or an exit code after a message. */
static int open_store(struct serve *serve, const struct settings *s, const char *url)
{
    const struct cli_context context = {.store_url = url};
    int exit_code = 0;

    serve->store = cli_open(&context, &exit_code);
    if (serve->store == NULL)
        return exit_code;
    serve->detached = (hf_store_features(serve->store) & HF_FEATURE_DETACHED) != 0;
    serve->options.max_ttl_ms = hf_store_max_ttl_ms(serve->store);
    if (s->max_ttl_ms >= 0 && s->max_ttl_ms < (int64_t)serve->options.max_ttl_ms)
        serve->options.max_ttl_ms = (uint32_t)s->max_ttl_ms;
    (void)snprintf(serve->scheme, sizeof serve->scheme, "%.*s",
                   (int)strcspn(hf_store_url(serve->store), ":"), hf_store_url(serve->store));
    if (!serve->detached)
        cli_error(
            "%s has no detached leases: it is served for looking only, nothing can be acquired",
            hf_store_url(serve->store));
    return 0;
}

/* 0, or an exit code after a message. */
static int start_listening(const struct settings *s, struct server_sockets *sockets)
{
    struct hf_error err;
    enum hf_status status = sockets_inherit(sockets, &err);

    for (size_t i = 0; status == HF_OK && i < s->listen_list.count; i++)
        status = sockets_add(sockets, s->listen[i], &err);
    if (status == HF_OK && sockets->count == 0)
        status = sockets_default(sockets, &err);
    if (status != HF_OK)
        return cli_fail(&err);
    if (sockets_have_tcp(sockets) && s->options.credentials_file == NULL)
        return cli_usage_error(&command,
                               "tcp: needs --tokens FILE: every user of this machine, and every "
                               "web page, reaches a loopback address");
    return 0;
}

static int run(struct settings *s, const char *url)
{
    struct serve serve = {.options = s->options, .stop_fd = -1};
    struct server_sockets sockets = {.count = 0};
    struct hf_error err;
    int signal_fd = cli_catch_signals(); /* blocked before any thread is there */
    int exit_code = signal_fd >= 0 ? 0 : EXIT_HF_INTERNAL;

    serve.credentials = credentials_open();
    if (exit_code == 0 && serve.credentials != NULL && s->options.credentials_file != NULL &&
        credentials_read(serve.credentials, s->options.credentials_file, &err) != HF_OK)
        exit_code = cli_fail(&err);
    if (exit_code == 0)
        exit_code = start_listening(s, &sockets);
    if (exit_code == 0)
        exit_code = open_store(&serve, s, url);
    if (exit_code == 0 && !make_parts(&serve)) {
        cli_error("out of memory, or of threads");
        exit_code = EXIT_HF_INTERNAL;
    }
    if (exit_code == 0) {
        for (size_t i = 0; i < sockets.count; i++)
            cli_error("%s is served on %s", hf_store_url(serve.store), sockets.all[i].shown);
        accept_clients(&serve, &sockets, signal_fd);
    }
    sockets_close(&sockets);
    close_parts(&serve);
    if (signal_fd >= 0)
        (void)close(signal_fd);
    return exit_code;
}

int main(int argc, char **argv)
{
    const char *from_environment = secure_getenv("HOLDFAST_STORE");
    struct settings s = {
        .max_ttl_ms = -1,
        .options = {.max_clients = 1024, .max_waiters = 900, .max_wait_ms = 3600 * 1000}};
    const char *url = from_environment;
    int parsed;

    s.listen_list = (struct cli_list){.items = s.listen, .most = SERVE_SOCKETS_MAX};
    s.host_list = (struct cli_list){.items = s.options.hosts, .most = SERVE_HOSTS_MAX};
    s.watch_list = (struct cli_list){.items = s.options.watch, .most = SERVE_WATCH_MAX};
    parsed = parse(&s, argc, argv);
    if (parsed < 0)
        return cli_parse_exit(parsed);
    s.options.host_count = s.host_list.count;
    s.options.watch_count = s.watch_list.count;
    if (!check(&s))
        return EXIT_HF_USAGE;
    if (s.new_credential != NULL)
        return new_credential(s.new_credential);
    if (s.url[0] != '\0' || cli_store_fd_read(from_environment, s.url) == CLI_STORE_FD_READ)
        url = s.url;
    raise_limits();
    (void)mallopt(M_ARENA_MAX, ARENAS_MAX);
    return run(&s, url);
}
