/* fuzz_serve_body.c - the JSON of requests. */
#include "serve/body.h"

#include "base/base.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct body body;
    const char *why = NULL;
    char *exact = malloc(size); /* not ended by a NUL: a byte behind it is found */

    memcpy(exact, data, size);
    if (!body_parse(exact, size, &body, &why)) {
        assert(why != NULL);
    } else {
        assert((body.given & BODY_NAME) == 0 || hf__name_valid(body.name));
        assert((body.given & BODY_OWNER) == 0 || strlen(body.owner) == HF_OWNER_LEN);
        assert(body.token <= INT64_MAX && body.ttl_ms <= HF_TTL_MAX_MS && body.wait_ms >= 0);
        assert(memchr(exact, '[', size) == NULL || memchr(exact, '"', size) != NULL);
    }
    free(exact);
    return 0;
}
