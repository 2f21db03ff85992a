/* twice.c - a store that now and then grants what another holds. */
#define PLUGIN_SCHEME "twice"
#define FORGETS_ODDS  30
#define TOKEN_US      1
#include "crooked.h"
