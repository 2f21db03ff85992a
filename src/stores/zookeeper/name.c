/* name.c - names of nodes. */
#include "stores/zookeeper/name.h"
#include "base/base.h"
#include "base/url.h"

#include <stdio.h>
#include <string.h>

bool zk_node_name(char *out, size_t size, const char *text)
{
    /* These two are no names of nodes. */
    if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return snprintf(out, size, "%s", text[1] != '\0' ? "%2E%2E" : "%2E") < (int)size;
    return hf__url_encode(out, size, text);
}

bool zk_node_text(char *out, size_t size, const char *node)
{
    char text[ZK_NAME_MAX + 1];
    char again[ZK_NAME_MAX + 1];

    if (!hf__url_copy(text, sizeof text, node, strlen(node)) || strlen(text) >= size ||
        !hf__name_valid(text) || !zk_node_name(again, sizeof again, text) ||
        strcmp(again, node) != 0)
        return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}
