/* tiny.c - a plugin as it should be. */
#define PLUGIN_SCHEME "tiny"
#define PLUGIN_ABI    HF_STORE_ABI
#include "plain.h"
