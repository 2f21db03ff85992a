#!/bin/bash
# A command that became another user cannot be ended by us, and we say so.
set -u
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" != 0 ] || ! setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null; then
    skip 6 'only root can try that'
    done_testing
    exit
fi
chmod 755 "$dir"
mkdir -m 700 "$dir/user"
chown 65534:65534 "$dir/user"
cp "$(command -v setpriv)" "$dir/user/rooted"
chmod 4755 "$dir/user/rooted"
: >"$dir/user/err"
chown 65534 "$dir/user/err"
as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups env "HOLDFAST_STORE=file:$dir/user/store" "$@"; }
ends_at() { # PID of the setuid process
    pgrep -fx "sleep 6.5"
}

start as_user "$hf" run --ttl 3s --grace 200ms --max-runtime 300ms job -- \
    sh -c "$dir/user/rooted --reuid=0 sleep 6.5; exit 0" 2>"$dir/err"
within 10 grep -q EPERM "$dir/err"
ok $? 'a process of another user that cannot be ended is told of'
rooted=$(ends_at)
like "$(cat "$dir/err")" "pid $rooted \(sleep\) cannot be ended: .*\(EPERM\)" 'by its number'
unlike "$(cat "$dir/err")" watchdog 'and the watchdog is not blamed'
as_user "$hf" run -n job -- true 2>/dev/null
is "$?" 75 'its lock stays held while the lease can be kept'
ended "$pid"
is "$rc" 124 'and when it has ended, we end'
is "$(grep -c EPERM "$dir/err")" 1 'it was said once'

done_testing
