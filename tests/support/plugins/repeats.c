/* repeats.c - a store that excludes, and gives one token to all holds of a second. */
#define PLUGIN_SCHEME "repeats"
#define FORGETS_ODDS  0
#define TOKEN_US      1000000
#include "crooked.h"
