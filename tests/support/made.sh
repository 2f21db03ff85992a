# made.sh - what is made once in a run of the tests, and then copied. Sourced by bash.
# shellcheck shell=bash

# made_once KEY FOLDER COMMAND... : FOLDER as COMMAND makes it; what the first test made is kept beside the
# run's other files, and the others copy it. A copy has the same identity: two that must differ are made twice.
made_once() {
    local kept=${RUN_WORK:+$RUN_WORK/made/$1} folder=$2
    shift 2
    if [ -d "${kept:-/dev/null}" ]; then
        cp -a "$kept" "$folder"
        return
    fi
    "$@" || return
    if [ -n "$kept" ]; then
        mkdir -p "$RUN_WORK/made" && cp -a "$folder" "$kept.$$" && mv -T "$kept.$$" "$kept"
    fi 2>/dev/null || rm -rf "$kept.$$"
}
