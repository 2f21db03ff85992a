/* command.c - `holdfast fence`, as the overview shows it. Its own commands are in cmd_fence.c. */
#include "cli/cli.h"

const struct cli_command command_fence = {"fence", "COMMAND [ARG...]",
                                          "make a resource refuse a stale token", cmd_fence};
