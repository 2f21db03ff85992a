/* route.c - the table of routes, and who may use them. */
#include "serve/credentials.h"
#include "serve/metrics.h"
#include "serve/page.h"
#include "serve/serve.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct route routes[] = {
    {HTTP_POST, "/v1/acquire", RIGHT_LOCK, OP_ACQUIRE, serve_acquire},
    {HTTP_POST, "/v1/renew", RIGHT_LOCK, OP_RENEW, serve_renew},
    {HTTP_POST, "/v1/release", RIGHT_LOCK, OP_RELEASE, serve_release},
    {HTTP_GET, "/v1/locks", RIGHT_LOOK, OP_LOCKS, serve_locks},
    {HTTP_GET, "/v1/lock", RIGHT_LOOK, OP_LOCK, serve_lock},
    {HTTP_GET, "/v1/store", RIGHT_ANY, OP_STORE, serve_store},
    {HTTP_GET, "/metrics", RIGHT_METRICS, OP_METRICS, metrics_handle},
    {HTTP_GET, "/", RIGHT_NONE, OP_PAGE, serve_page},
    {HTTP_GET, "/healthz", RIGHT_NONE, OP_HEALTHZ, serve_healthz},
    {HTTP_GET, "/readyz", RIGHT_NONE, OP_READYZ, serve_readyz},
};

/* The host of "host", "host:port" or "[::1]:port" against a name. */
static bool host_is(const char *host, const char *name)
{
    size_t len = strlen(name);
    const char *port = host + len;

    if (strncasecmp(host, name, len) != 0)
        return false;
    return port[0] == '\0' || (port[0] == ':' && port[1] != '\0' &&
                               strspn(port + 1, "0123456789") == strlen(port + 1));
}

/* A page of another site whose name was made to lead here ("rebinding") says that name. */
static bool host_known(const struct exchange *x)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};
    const struct serve_options *options = &x->serve->options;
    const char *host = x->request.host;

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (host_is(host, own[i]))
            return true;
    for (size_t i = 0; i < options->host_count; i++)
        if (host_is(host, options->hosts[i]))
            return true;
    return false;
}

/* The route, or NULL and the answer. */
static const struct route *find(struct exchange *x)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(routes[i].path, x->request.path) != 0)
            continue;
        x->op = routes[i].op;
        if (routes[i].method == x->request.method)
            return &routes[i];
        text_printf(&x->answer.headers, "Allow: %s\r\n",
                    routes[i].method == HTTP_GET ? "GET" : "POST");
        serve_refuse(x, 405, HF_INVALID, "this path is for %s only",
                     routes[i].method == HTTP_GET ? "GET" : "POST");
        return NULL;
    }
    serve_refuse(x, 404, HF_INVALID, "there is no such path");
    return NULL;
}

/* On a Unix socket the mode of its file has decided; labels still say who it was. */
static void name_user(struct exchange *x)
{
    char buffer[1024];
    struct passwd entry, *found = NULL;

    if (getpwuid_r(x->uid, &entry, buffer, sizeof buffer, &found) == 0 && found != NULL)
        (void)snprintf(x->who.name, sizeof x->who.name, "%s", found->pw_name);
    else
        (void)snprintf(x->who.name, sizeof x->who.name, "%lu", (unsigned long)x->uid);
}

static bool refuse_unknown(struct exchange *x, const char *why)
{
    text_printf(&x->answer.headers, "WWW-Authenticate: Bearer realm=\"holdfast\"\r\n");
    serve_refuse(x, 401, HF_DENIED, "%s", why);
    return false;
}

/* Finds out who asks. False: that is not known, and the answer says so. */
static bool identify(struct exchange *x)
{
    static const char scheme[] = "Bearer ";
    const char *given = x->request.authorization;

    if (x->local && given == NULL) {
        if (x->who.name[0] == '\0')
            name_user(x);
        return true;
    }
    if (given == NULL)
        return refuse_unknown(x, "this needs a credential: Authorization: Bearer SECRET");
    if (strncasecmp(given, scheme, sizeof scheme - 1) == 0)
        x->who.credential = credentials_find(x->serve->credentials, given + sizeof scheme - 1);
    if (x->who.credential == NULL)
        return refuse_unknown(x, "the credential is not known here");
    (void)snprintf(x->who.name, sizeof x->who.name, "%s", x->who.credential->name);
    return true;
}

bool serve_may(struct exchange *x, enum right right, const char *name)
{
    const struct credential *credential = x->who.credential;

    if (credential == NULL || credential_may(credential, right, name))
        return true;
    serve_refuse(x, 403, HF_DENIED, "the credential %s has no right for this", x->who.name);
    return false;
}

/* What a page of another site can send without asking first is never application/json. */
static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    size_t len = sizeof json - 1;

    return type != NULL && strncasecmp(type, json, len) == 0 &&
           (type[len] == '\0' || type[len + strspn(type + len, " \t")] == ';');
}

void serve_route(struct exchange *x)
{
    const struct route *route;

    if (!host_known(x)) {
        x->answer.close = true;
        serve_refuse(x, 400, HF_INVALID,
                     "the Host is none of this server's addresses, nor a --host of it");
        return;
    }
    route = find(x);
    if (route == NULL || (route->right != RIGHT_NONE && !identify(x)) ||
        (route->right > RIGHT_ANY && !serve_may(x, route->right, NULL)))
        return;
    if (route->method == HTTP_POST && !is_json(x->request.content_type)) {
        serve_refuse(x, 400, HF_INVALID, "the Content-Type has to be application/json");
        return;
    }
    route->handle(x);
}
