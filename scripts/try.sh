#!/bin/sh
# try.sh PROGRAM - show a newcomer what holdfast does, in a store that is thrown away.
set -eu

program=${1:?usage: try.sh PROGRAM}
dir=$(mktemp -d)
job=
finish() {
    [ -z "$job" ] || kill "$job" 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

HOLDFAST_STORE=file:$dir/store
export HOLDFAST_STORE
mkfifo "$dir/started" "$dir/go"

echo 'A job runs under the lock "nightly":'
echo "  \$ holdfast run nightly -- ./job"
"$program" run nightly -- sh -c '
    echo "  job: I hold \"$HOLDFAST_NAME\", my fencing token is $HOLDFAST_TOKEN"
    echo started >"$0"
    read -r _ <"$1"
    echo "  job: done"' "$dir/started" "$dir/go" &
job=$!
# If the job cannot start, nobody writes here: so the wait ends with the job, which is a zombie until we wait for it.
(
    while grep -qs '^State:[[:blank:]]*[^Z[:blank:]]' "/proc/$job/status"; do sleep 0.2; done
    echo gone >"$dir/started"
) &
watcher=$!
read -r state <"$dir/started"
kill "$watcher" 2>/dev/null || true
if [ "$state" != started ]; then
    job=
    echo 'try: the job could not be started' >&2
    exit 1
fi

echo
echo 'Meanwhile another one wants the same lock, and does not want to wait (-n):'
echo "  \$ holdfast run -n nightly -- ./job"
code=0
refusal=$("$program" run -n nightly -- echo 'two jobs at once!' 2>&1) || code=$?
echo "$refusal" | sed 's/^/  /'
echo "  exit code $code"
if [ "$code" != 75 ]; then
    echo 'try: the second job was not refused' >&2
    exit 1
fi

echo
echo 'And this is what everybody can see:'
echo "  \$ holdfast list"
"$program" list | sed 's/^/  /'

echo
echo go >"$dir/go"
wait "$job"
job=
echo
echo 'It works. Next, for instance in a crontab:'
echo "  $program run -n --skip-ok nightly -- ./backup.sh"
echo "  $program --help"
