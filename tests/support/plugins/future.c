/* future.c - a plugin built for a later table of operations. */
#define PLUGIN_SCHEME "future"
#define PLUGIN_ABI    (HF_STORE_ABI + 1)
#include "plain.h"
