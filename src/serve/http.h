/* http.h - requests of HTTP/1.1 as the server takes them: a strict subset, read without I/O.
 *
 * What two programs could read in two ways is refused, so that a proxy before us and we never
 * disagree about where a request ends: lines end with CRLF; a body has one Content-Length of digits
 * and nothing else; no Transfer-Encoding, no folded lines, no space before a colon, no absolute
 * URI, no upgrade, no NUL. */
#ifndef HF_SERVE_HTTP_H
#define HF_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_HEAD_MAX = 8192,     /* bytes of a request line and its headers */
    HTTP_BODY_MAX = 16384,    /* bytes of a body */
    HTTP_HEADERS_MAX = 64,    /* lines */
    HTTP_PARAMETERS_MAX = 16, /* of a query */
};

enum http_method { HTTP_GET, HTTP_POST, HTTP_HEAD, HTTP_OTHER };

/* A request. Texts lie in the buffer that was parsed, and end with a NUL. */
struct http_request {
    enum http_method method;
    bool version_1_0;
    char *path;
    char *query;         /* as it came, "" if there was none */
    char *host;          /* never NULL in a parsed request */
    char *authorization; /* these: NULL if there was none */
    char *content_type;
    bool streams;          /* it accepts application/x-ndjson */
    bool close;            /* the client asked for it, or speaks HTTP/1.0 without keep-alive */
    bool expects_continue; /* 100-continue */
    bool has_length;
    size_t body_len; /* Content-Length; 0 if there is none */
    size_t head_len; /* where the body begins */
    char *body;      /* what follows the head; filled in by whoever has read it */
};

enum http_parsed {
    HTTP_MORE, /* the head is not complete yet */
    HTTP_DONE,
    HTTP_BAD /* *why has the answer; the connection ends with it */
};

/* Why a request is refused. */
struct http_refusal {
    int code;           /* 400, 408, 411, 413 */
    const char *detail; /* a sentence */
};

/* Reads the head of a request from data[0..len). Changes the buffer once the head is complete, and
 * only then. */
enum http_parsed http_parse(char *data, size_t len, struct http_request *out,
                            struct http_refusal *why);

/* Decodes the query in place and calls for each parameter; names and values end with NULs. */
struct http_parameter {
    char *name;
    char *value;
};
/* The number of parameters; -1: a bad escape, %00, what is not UTF-8, one that comes twice, or too
 * many. */
int http_parameters(char *query, struct http_parameter out[HTTP_PARAMETERS_MAX]);

/* "Not Found" for 404, and so on. */
const char *http_reason(int code);

#endif /* HF_SERVE_HTTP_H */
