/* ifeq_module.c - a module that gives a server of today the commands of tomorrow, with their
 * documented semantics: DELEX key IFEQ value (Redis 8.4), DELIFEQ key value (Valkey 9.0) and
 * SET key value IFEQ value PX ms (both). The argument "delex" or "delifeq" chooses the dialect. */
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* The few declarations of the module API that are needed; redismodule.h is in no package. */
typedef struct context context;
typedef struct text text;
typedef int command_fn(context *, text **, int);

static int (*get_api)(const char *, void *);
static void (*set_attributes)(context *, const char *, int, int);
static int (*create_command)(context *, const char *, command_fn *, const char *, int, int, int);
static const char *(*string_ptr)(const text *, size_t *);
static void *(*call)(context *, const char *, const char *, ...);
static int (*reply_integer)(context *, long long);
static int (*reply_null)(context *);
static int (*reply_error)(context *, const char *);
static int (*reply_call)(context *, void *);
static void *(*open_key)(context *, text *, int);
static char *(*string_dma)(void *, size_t *, int);
static void (*close_key)(void *);
static void *(*register_filter)(context *, void (*)(void *), int);
static int (*filter_count)(void *);
static const text *(*filter_get)(void *, int);
static int (*filter_replace)(void *, int, text *);
static text *(*create_string)(context *, const char *, size_t);
static int (*wrong_arity)(context *);

enum { READ = 1, WRITE = 2 };

static int equals(context *ctx, text *name, text *value)
{
    void *k = open_key(ctx, name, READ);
    size_t have_len = 0;
    size_t want_len;
    const char *want = string_ptr(value, &want_len);
    const char *have = k != NULL ? string_dma(k, &have_len, READ) : NULL;
    int same = have != NULL && have_len == want_len && memcmp(have, want, want_len) == 0;

    if (k != NULL)
        close_key(k);
    return same;
}

static int delete_if(context *ctx, text *name, text *value)
{
    if (!equals(ctx, name, value))
        return reply_integer(ctx, 0);
    return reply_call(ctx, call(ctx, "DEL", "!s", name));
}

static int delex(context *ctx, text **argv, int argc)
{
    if (argc != 4)
        return wrong_arity(ctx);
    if (strcasecmp(string_ptr(argv[2], NULL), "IFEQ") != 0)
        return reply_error(ctx, "ERR syntax error");
    return delete_if(ctx, argv[1], argv[3]);
}

static int delifeq(context *ctx, text **argv, int argc)
{
    return argc != 3 ? wrong_arity(ctx) : delete_if(ctx, argv[1], argv[2]);
}

/* SET key value IFEQ compare PX ms, after the filter gave it another name. */
static int setifeq(context *ctx, text **argv, int argc)
{
    if (argc != 7)
        return reply_error(ctx, "ERR syntax error");
    if (!equals(ctx, argv[1], argv[4]))
        return reply_null(ctx);
    return reply_call(ctx, call(ctx, "SET", "!sscs", argv[1], argv[2], "PX", argv[6]));
}

static void rename_set(void *f)
{
    if (filter_count(f) == 7 && strcasecmp(string_ptr(filter_get(f, 0), NULL), "SET") == 0 &&
        strcasecmp(string_ptr(filter_get(f, 3), NULL), "IFEQ") == 0)
        (void)filter_replace(f, 0, create_string(NULL, "test.setifeq", 12));
}

int RedisModule_OnLoad(context *ctx, text **argv, int argc);

int RedisModule_OnLoad(context *ctx, text **argv, int argc)
{
    const struct {
        const char *name;
        void *slot;
    } api[] = {{"RedisModule_SetModuleAttribs", &set_attributes},
               {"RedisModule_CreateCommand", &create_command},
               {"RedisModule_StringPtrLen", &string_ptr},
               {"RedisModule_Call", &call},
               {"RedisModule_ReplyWithLongLong", &reply_integer},
               {"RedisModule_ReplyWithNull", &reply_null},
               {"RedisModule_ReplyWithError", &reply_error},
               {"RedisModule_ReplyWithCallReply", &reply_call},
               {"RedisModule_OpenKey", &open_key},
               {"RedisModule_StringDMA", &string_dma},
               {"RedisModule_CloseKey", &close_key},
               {"RedisModule_RegisterCommandFilter", &register_filter},
               {"RedisModule_CommandFilterArgsCount", &filter_count},
               {"RedisModule_CommandFilterArgGet", &filter_get},
               {"RedisModule_CommandFilterArgReplace", &filter_replace},
               {"RedisModule_CreateString", &create_string},
               {"RedisModule_WrongArity", &wrong_arity}};

    memcpy(&get_api, ctx, sizeof get_api); /* the context starts with it */
    for (size_t i = 0; i < sizeof api / sizeof *api; i++)
        if (get_api(api[i].name, api[i].slot) != 0)
            return 1;
    if (argc != 1)
        return 1;
    set_attributes(ctx, "ifeq", 1, 1);
    (void)register_filter(ctx, rename_set, 0);
    if (create_command(ctx, "test.setifeq", setifeq, "write deny-oom", 1, 1, 1) != 0)
        return 1;
    return strcmp(string_ptr(argv[0], NULL), "delex") == 0
               ? create_command(ctx, "delex", delex, "write", 1, 1, 1)
               : create_command(ctx, "delifeq", delifeq, "write", 1, 1, 1);
}
