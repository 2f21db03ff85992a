/* fuzz_serve_request.c - requests as the server reads them: a head in two pieces, and its query. */
#include "serve/http.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a head that was taken is like. */
static void check(const struct http_request *request, size_t size)
{
    assert(request->head_len > 0 && request->head_len <= size);
    assert(request->head_len <= HTTP_HEAD_MAX && request->body_len <= HTTP_BODY_MAX);
    assert(request->path[0] == '/' && request->host != NULL);
    assert(strchr(request->path, ' ') == NULL && strchr(request->path, '?') == NULL);
    assert(request->method != HTTP_POST || request->has_length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_request request;
    struct http_refusal why = {0};
    struct http_parameter parameters[HTTP_PARAMETERS_MAX];
    char *buffer = malloc(size + 1);
    enum http_parsed first, whole;

    memcpy(buffer, data, size);
    /* A part of it is refused only if all of it is, and is complete only if all of it is. */
    first = http_parse(buffer, size / 2, &request, &why);
    memcpy(buffer, data, size);
    whole = http_parse(buffer, size, &request, &why);
    assert(first == HTTP_MORE || first == whole);
    if (whole == HTTP_BAD)
        assert(why.code >= 400 && why.code < 500 && why.detail != NULL);
    if (whole == HTTP_DONE) {
        check(&request, size);
        assert(http_parameters(request.query, parameters) <= HTTP_PARAMETERS_MAX);
    }
    free(buffer);
    return 0;
}
