/* past.c - a plugin built for an earlier table of operations, whose structs were smaller. */
#define PLUGIN_SCHEME "past"
#define PLUGIN_ABI    (HF_STORE_ABI - 1)
#include "plain.h"
