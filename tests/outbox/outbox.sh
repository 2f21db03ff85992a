# outbox.sh - starts the databases and runs one of the programs beside it, which prints the tests.
# Sourced by the .t files, after `set -u`: run_python NAME [ARGUMENT...]
# shellcheck shell=bash
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/../fence/fence.sh"

run_python() {
    local name=$1
    shift
    # Debian's own, which knows Debian's drivers.
    SQL_DIR=$SQL_DIR HOLDFAST=$hf HOLDFAST_STORE=file:$dir/store PYTHONDONTWRITEBYTECODE=1 \
        PYTHONPATH=$root/tests/idem /usr/bin/python3 "$root/tests/outbox/$name" "$@"
}
