/* liar.c - a plugin that does not know the scheme it is named after. */
#define PLUGIN_SCHEME "other"
#define PLUGIN_ABI    HF_STORE_ABI
#include "plain.h"
