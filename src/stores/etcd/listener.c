/* listener.c - hears when a key of ours is deleted or a hold revoked. What does not say "Lock held"
 * belongs to the keeper's thread. */
#include "stores/etcd/listener.h"
#include "base/backoff.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SETTLE_NS    (200 * HF__NS_PER_MS) /* a hold that is over by then is not watched */
#define RETRY_NS     HF__NS_PER_S          /* after a watch that broke, and longer after the next */
#define RETRY_MAX_NS (16 * HF__NS_PER_S)
#define NAMED_MAX    8 /* losses told one by one; of more, all holds are in doubt */

struct ec_listener {
    int news_fd;   /* eventfd: there is a hold that is not watched */
    int either_fd; /* epoll: that one, or the keeper's wake_fd */
    struct ec_watch watch;
    bool standing;              /* etcd has said that it watches */
    struct hf__backoff backoff; /* after watches that broke before that */
    int64_t open_ns;            /* when to open a watch, or another; HF_NEVER */

    /* guarded by the store's lock */
    bool alerted; /* news_fd was written, and not yet acted on */
    size_t heard; /* holds that are gone or revoked and not told yet */
    struct ec_cover cover;
};

static void listener_free(struct ec_listener *l)
{
    if (l->news_fd >= 0)
        (void)close(l->news_fd);
    if (l->either_fd >= 0)
        (void)close(l->either_fd);
    ec_stream_clear(&l->watch.stream);
    free(l);
}

static struct ec_listener *listener_open(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct ec_listener *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->backoff = (struct hf__backoff){.first_ns = RETRY_NS, .most_ns = RETRY_MAX_NS};
    l->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->either_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->news_fd >= 0 && l->either_fd >= 0 &&
        epoll_ctl(l->either_fd, EPOLL_CTL_ADD, l->news_fd, &event) == 0)
        return l;
    listener_free(l);
    return NULL;
}

/* The HTTP handle of its watch is the store's, and closed with the others. */
void ec_listener_close(struct ec_store *store)
{
    if (store->listener != NULL)
        listener_free(store->listener);
    store->listener = NULL;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

bool ec_cover_has(const struct ec_cover *cover, const char *key, size_t len)
{
    const struct ec_cover_key *keys = cover->keys;

    if (cover->stretch)
        return compare(keys[0].key, keys[0].len, key, len) <= 0 &&
               compare(key, len, keys[1].key, keys[1].len) <= 0;
    for (size_t i = 0; i < cover->count; i++)
        if (compare(keys[i].key, keys[i].len, key, len) == 0)
            return true;
    return false;
}

static void set_key(struct ec_cover_key *to, const char *key, size_t len)
{
    memcpy(to->key, key, len);
    to->len = len;
}

void ec_cover_add(struct ec_cover *cover, const char *key, size_t len)
{
    struct ec_cover_key *keys = cover->keys;

    if (ec_cover_has(cover, key, len))
        return;
    if (!cover->stretch && cover->count < EC_COVER_MAX) {
        set_key(&keys[cover->count++], key, len);
        return;
    }
    if (!cover->stretch) {
        struct ec_cover list = *cover;

        *cover = (struct ec_cover){.count = 2, .stretch = true};
        set_key(&keys[0], key, len);
        set_key(&keys[1], key, len);
        for (size_t i = 0; i < list.count; i++)
            ec_cover_add(cover, list.keys[i].key, list.keys[i].len);
    } else if (compare(key, len, keys[0].key, keys[0].len) < 0) {
        set_key(&keys[0], key, len);
    } else {
        set_key(&keys[1], key, len);
    }
}

static struct ec_range key_of(const struct ec_store *store, const struct ec_hold *hold,
                              struct ec_keys *keys)
{
    ec_keys_make(keys, store->url.prefix, hold->name, hold->owner);
    ec_keys_use(keys, hold->news.waited);
    return ec_keys_own(keys);
}

bool ec_listener_misses(struct ec_store *store, const struct ec_hold *hold)
{
    struct ec_listener *l = store->listener;
    struct ec_keys keys;
    struct ec_range key;

    if (l == NULL || l->alerted)
        return false;
    key = key_of(store, hold, &keys);
    l->alerted = !ec_cover_has(&l->cover, key.key, key.key_len);
    return l->alerted;
}

void ec_listener_alert(struct ec_store *store)
{
    (void)eventfd_write(store->listener->news_fd, 1);
}

/* What has to be watched, and from when. */
struct survey {
    struct ec_store *store;
    struct ec_cover *cover;
    uint64_t oldest; /* token; 0: there is nothing to watch */
    bool again;      /* some were watched before */
};

static void survey_hold(struct ec_hold *hold, void *data)
{
    struct survey *survey = data;
    struct ec_keys keys;
    struct ec_range key;

    if (hold->news.token == 0 || hold->gone || hold->news.lease == 0)
        return;
    key = key_of(survey->store, hold, &keys);
    ec_cover_add(survey->cover, key.key, key.key_len);
    if (survey->oldest == 0 || hold->news.token < survey->oldest)
        survey->oldest = hold->news.token;
    survey->again = survey->again || hold->watched;
    hold->watched = true;
}

/* A hold whose key was deleted after it was granted. */
struct deletion {
    const struct ec_kv *kv;
    const char *name;
    const char *owner; /* "": the key is that of one who did not wait */
    size_t *heard;
};

static void note_deletion(struct ec_hold *hold, void *data)
{
    const struct deletion *deletion = data;

    if (hold->gone || hold->news.token == 0 || hold->news.token >= deletion->kv->mod_revision ||
        hold->news.waited != (deletion->owner[0] != '\0') ||
        strcmp(hold->name, deletion->name) != 0)
        return;
    if (deletion->owner[0] != '\0' && strcmp(hold->owner, deletion->owner) != 0)
        return;
    hold->gone = true;
    ++*deletion->heard;
}

static void on_deleted(struct ec_store *store, const struct ec_kv *kv)
{
    char name[HF_NAME_MAX + 1];
    char owner[HF_OWNER_LEN + 1] = "";
    struct deletion deletion = {
        .kv = kv, .name = name, .owner = owner, .heard = &store->listener->heard};
    size_t behind;

    if (!ec_key_name(kv, store->url.prefix, name))
        return;
    behind = strlen(store->url.prefix) + strlen(name) + 1;
    if (kv->key_len - behind >= sizeof owner)
        return;
    memcpy(owner, kv->key + behind, kv->key_len - behind);
    pthread_mutex_lock(&store->lock);
    ec_holds_each(&store->holds, note_deletion, &deletion);
    pthread_mutex_unlock(&store->lock);
}

/* A hold that a notice is about. */
struct notice {
    char name[HF_NAME_MAX + 1];
    uint64_t token;
    size_t *heard;
};

static void note_revocation(struct ec_hold *hold, void *data)
{
    const struct notice *notice = data;

    if (hold->gone || hold->revoked || hold->news.token != notice->token ||
        strcmp(hold->name, notice->name) != 0)
        return;
    hold->revoked = true;
    ++*notice->heard;
}

static void on_heard(void *data, const struct ec_kv *kv, bool deleted)
{
    struct ec_store *store = data;
    struct notice notice = {.heard = &store->listener->heard};

    if (deleted) {
        on_deleted(store, kv);
        return;
    }
    if (!ec_notice_parse(kv->key, kv->key_len, store->url.prefix, notice.name, &notice.token))
        return;
    pthread_mutex_lock(&store->lock);
    ec_holds_each(&store->holds, note_revocation, &notice);
    pthread_mutex_unlock(&store->lock);
}

static size_t ranges_of(const struct ec_cover *cover, struct ec_range *out, char *end)
{
    const struct ec_cover_key *keys = cover->keys;

    for (size_t i = 0; i < cover->count && !cover->stretch; i++)
        out[i] = (struct ec_range){.key = keys[i].key, .key_len = keys[i].len};
    if (!cover->stretch)
        return cover->count;
    memcpy(end, keys[1].key, keys[1].len); /* up to the smallest key above the last */
    end[keys[1].len] = '\0';
    out[0] = (struct ec_range){
        .key = keys[0].key, .key_len = keys[0].len, .end = end, .end_len = keys[1].len + 1};
    return 1;
}

static void end_watch(struct ec_store *store, struct ec_listener *l)
{
    if (l->watch.http != NULL)
        ec_watch_close(store, &l->watch);
    l->standing = false;
}

static int64_t retry_ns(const struct ec_store *store, struct ec_listener *l)
{
    uint32_t dice;

    store->base.host->random(&dice, sizeof dice);
    return hf__backoff_failed(&l->backoff, store->base.host->now_ns(), dice);
}

/* Opens a watch over all that is held now; none if there is nothing. A stretch stays, so that it
 * need not grow again and again. */
static void open_watch(struct ec_store *store, struct ec_listener *l)
{
    struct ec_cover cover = {0};
    struct survey survey = {.store = store, .cover = &cover};
    struct ec_watch_plan plan;
    char end[EC_KEY_MAX + 1];
    char notices[2][EC_PREFIX_MAX + 1];

    end_watch(store, l);
    pthread_mutex_lock(&store->lock);
    if (l->cover.stretch)
        cover = l->cover;
    ec_holds_each(&store->holds, survey_hold, &survey);
    l->alerted = false;
    if (survey.oldest == 0)
        cover = (struct ec_cover){0};
    l->cover = cover;
    pthread_mutex_unlock(&store->lock);
    l->open_ns = HF_NEVER;
    if (survey.oldest == 0)
        return;
    /* The first watch cannot miss anything: it begins where the oldest hold did. */
    plan.from_revision = survey.again ? 0 : survey.oldest + 1;
    plan.count = ranges_of(&cover, plan.ranges, end);
    plan.puts = ec_notices(store->url.prefix, notices[0], notices[1]);
    if (!ec_watch_open_many(store, &l->watch, &plan, on_heard, store))
        l->open_ns = retry_ns(store, l);
    else if (!survey.again)
        l->watch.stream.wanted = 0;
}

/* For those who are gone or revoked and not told. */
struct telling {
    char owners[NAMED_MAX][HF_OWNER_LEN + 1];
    size_t count;
};

static void collect(struct ec_hold *hold, void *data)
{
    struct telling *telling = data;

    if ((!hold->gone && !hold->revoked) || hold->told)
        return;
    hold->told = true;
    if (telling->count < NAMED_MAX)
        memcpy(telling->owners[telling->count], hold->owner, sizeof hold->owner);
    telling->count++;
}

/* Whether there was anything to tell. */
static bool tell(struct ec_store *store, hf_doubt_fn *doubt, void *data)
{
    struct telling telling = {.count = 0};

    pthread_mutex_lock(&store->lock);
    if (store->listener->heard > 0)
        ec_holds_each(&store->holds, collect, &telling);
    store->listener->heard = 0;
    pthread_mutex_unlock(&store->lock);
    if (telling.count > NAMED_MAX)
        doubt(NULL, data);
    for (size_t i = 0; i < telling.count && telling.count <= NAMED_MAX; i++)
        doubt(telling.owners[i], data);
    explicit_bzero(&telling, sizeof telling.owners);
    return telling.count > 0;
}

static bool readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    return poll(&one, 1, 0) > 0;
}

/* Waits for what comes: a message, somebody who wakes us, news of a hold, the time to open. True:
 * every hold is in doubt. */
static bool wait_for_news(struct ec_store *store, struct ec_listener *l)
{
    struct hf__patience patience = {.deadline_ns = l->open_ns, .cancel_fd = l->either_fd};
    struct pollfd either = {.fd = l->either_fd, .events = POLLIN};
    enum ec_heard heard = EC_HEARD_NOTHING;
    eventfd_t ignored;
    bool standing = l->standing;

    if (l->watch.http != NULL)
        heard = ec_watch_listen(&l->watch, &patience);
    else
        (void)hf__poll_until(&either, 1, l->open_ns);
    if (eventfd_read(l->news_fd, &ignored) == 0 && l->open_ns == HF_NEVER)
        l->open_ns = store->base.host->now_ns() + SETTLE_NS;
    if (heard == EC_HEARD_BROKEN) {
        ec_turn_away(store, l->watch.endpoint);
        end_watch(store, l);
        l->open_ns = retry_ns(store, l);
        return standing;
    }
    if (l->watch.stream.created > 0) {
        l->standing = true;
        hf__backoff_worked(&l->backoff);
    }
    return heard == EC_HEARD_CREATED;
}

/* Requests go to another server now: the one that is listened to may be silent for a reason. */
static void follow(struct ec_store *store, struct ec_listener *l)
{
    char endpoint[EC_ENDPOINT_MAX];
    char auth[HF__HTTP_AUTH_MAX];

    if (l->watch.http == NULL)
        return;
    ec_where(store, endpoint, auth);
    explicit_bzero(auth, sizeof auth);
    if (strcmp(endpoint, l->watch.endpoint) != 0 && l->open_ns == HF_NEVER)
        l->open_ns = store->base.host->now_ns() + RETRY_NS;
}

/* The first call makes the listener. NULL: out of memory or descriptors, for now. */
static struct ec_listener *listener_of(struct ec_store *store, int wake_fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct ec_listener *l = store->listener;

    if (l != NULL || (l = listener_open()) == NULL)
        return l;
    if (epoll_ctl(l->either_fd, EPOLL_CTL_ADD, wake_fd, &event) != 0) {
        listener_free(l);
        return NULL;
    }
    l->alerted = true; /* of what is held already */
    l->open_ns = store->base.host->now_ns() + SETTLE_NS;
    pthread_mutex_lock(&store->lock);
    store->listener = l;
    pthread_mutex_unlock(&store->lock);
    return l;
}

void ec_listen(struct hf_store_base *base, int wake_fd, hf_doubt_fn *doubt, void *data)
{
    struct ec_store *store = (struct ec_store *)base;
    struct ec_listener *l = listener_of(store, wake_fd);
    struct pollfd wake = {.fd = wake_fd, .events = POLLIN};
    bool all = false;

    if (l == NULL) {
        (void)poll(&wake, 1, -1);
        return;
    }
    do {
        follow(store, l);
        if (base->host->now_ns() >= l->open_ns)
            open_watch(store, l);
        all = wait_for_news(store, l);
        if (all)
            doubt(NULL, data);
    } while (!tell(store, doubt, data) && !all && !readable(wake_fd));
}
