#!/bin/bash
# Digest credentials, missing grants, and URLs that cannot be.
set -u
. "$(dirname "$0")/lib.sh"
zk_start a maxSessionTimeout=60000
h=$(hosts a)
try() { # STORE ARG...
    local store=$1
    shift
    out=$("$hf" --store "$store" "$@" 2>&1)
    status=$?
}

try "zookeeper://ann:s3cret@$h/app" run job -- sh -c 'echo $HOLDFAST_TOKEN $HOLDFAST_STORE'
is $status 0 'with credentials'
like "$out" '[0-9]* zookeeper://ann*' 'the child sees the store'
[[ $out != *s3cret* ]]
ok $? 'without the password'
is "$(kazoo a "
k.add_auth('digest', 'ann:s3cret')
for path in '/app', '/app/holdfast', '/app/holdfast/job':
    print(*[(a.id.scheme, a.id.id.split(':')[0], a.perms) for a in k.get_acls(path)[0]])" | sort -u)" \
    "('digest', 'ann', 31)" 'every node is for that user only'

try "zookeeper://ann:wrong-one@$h/app" run job -- true
is $status 77 'a wrong password: 77'
like "$out" '*not for this user and password*' 'in a sentence'
[[ $out != *wrong-one* ]]
ok $? 'that does not tell it'
try "zookeeper://$h/app" status job
like "$status:$out" '77:*need a user and a password*' 'no password'
echo s3cret >"$dir/password"
try "zookeeper://ann@$h/app?password_file=$dir/password" run job -- true
is $status 0 'the password from a file'
HOLDFAST_ZOOKEEPER_PASSWORD=s3cret try "zookeeper://ann@$h/app" run job -- true
is $status 0 'the password from the environment'
try "zookeeper://ann@$h/app" run job -- true
like "$out" '*a user and a password go together*' 'a user alone'

# A host that refuses connections: the credentials go to the next one.
denied=0
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
    try "zookeeper://ann:s3cret@127.0.0.1:1,$h/app" run job -- true
    [ $status -eq 0 ] || denied=$((denied + 1))
done
is $denied 0 'a host that is down does not keep the credentials back'
like "$out" '' 'and nothing is said'
try "zookeeper://ann:s3cret@127.0.0.1:1/app" run -n job -- true
like "$status:$out" '69:*no server answers*' 'no host at all: 69, and the usual sentence'

kazoo a "k.create('/theirs', b'', acl=[make_acl('world', 'anyone', read=True)])"
try "zookeeper://$h/theirs" run job -- true
is $status 77 'a chroot in which we may not create: 77'
like "$out" 'holdfast: *theirs*' 'in a sentence'

for bad in 'zookeeper:/x' 'zookeeper://' 'zookeeper://h:0' 'zookeeper://h:99999' 'zookeeper://h/a/../b' \
    'zookeeper://h?what=1' 'zookeeper://h?tick=0' 'zookeeper://h?tick=soon' 'zookeeper://,h' 'zookeeper://:x@h' 'zookeeper://h/%zz'; do
    try "$bad" run job -- true
    is $status 64 "$bad is refused"
done
try "zookeeper://$h?tls=on" run job -- true
like "$out" '*without TLS*' 'TLS is refused in a sentence'
try "zookeeper://$h?tls=off" run job -- true
is $status 0 'tls=off is what it is anyway'

# Other recipes' nodes count: a client of Curator, or of kazoo that knows the pattern -lock-, at the
# same path is in the line.
kazoo a "
import subprocess
lock = k.Lock('/holdfast/shared', 'kazoo-client')
lock.acquire()
print(subprocess.run(['$hf', '--store', 'zookeeper://$h', 'run', '-n', 'shared', '--', 'true']).returncode)
lock.release()
" >"$dir/kazoo" 2>"$dir/err"
is "$(cat "$dir/kazoo")" 75 "kazoo's Lock keeps us out"
"$hf" --store "zookeeper://$h" run shared -- sh -c "touch '$dir/held'; sleep 60" &
holder=$!
eventually 10 test -e "$dir/held"
is "$(kazoo a "print(k.Lock('/holdfast/shared', extra_lock_patterns=['-lock-']).acquire(blocking=False))")" False "and we keep kazoo's Lock out"
kill -TERM $holder
wait $holder

# Sequence numbers at their end: only the czxid tells the order.
cat >"$dir/wrap.py" <<'PY'
import subprocess
import sys
from kazoo.client import KazooClient
k = KazooClient(sys.argv[1])
k.start()
k.ensure_path('/holdfast/wrap')
k.create('/holdfast/wrap/' + 'a' * 32 + '-lock-2147483647', b'1 1000 0 first', ephemeral=True)
k.create('/holdfast/wrap/' + 'b' * 32 + '-lock--2147483648', b'1 1000 0 second', ephemeral=True)
print(subprocess.run([sys.argv[2], '--store', 'zookeeper://' + sys.argv[1], 'status', 'wrap'],
                     capture_output=True, text=True).stdout)
k.stop()
PY
like "$(/usr/bin/python3 "$dir/wrap.py" "$h" "$hf")" '*first*' 'after the wrap-around the older child holds'
done_testing
