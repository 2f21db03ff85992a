/* fuzz_serve_credentials.c - the file of credentials. */
#include "serve/credentials.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct credential_table table;
    unsigned line = 0;
    const char *why = NULL;
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (!credential_table_parse(text, &table, &line, &why)) {
        assert(why != NULL && line > 0);
        return 0;
    }
    for (size_t i = 0; i < table.count; i++) {
        const struct credential *one = &table.credentials[i];

        assert(credential_name_valid(one->name) && one->right_count > 0);
        assert(credential_may(one, one->rights[0].right, one->rights[0].prefix));
        assert(!credential_may(one, RIGHT_NONE, ""));
    }
    credential_table_release(&table);
    return 0;
}
