#!/bin/bash
# Authentication is switched off and on again at the server, while clients hold and wait.
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a
ctl a user add root:r >/dev/null
ctl a user grant-role root root >/dev/null
ctl a role add locker >/dev/null
ctl a role grant-permission --prefix=true locker readwrite holdfast/ >/dev/null
ctl a user add job:j >/dev/null
ctl a user grant-role job locker >/dev/null
host=127.0.0.1:$(port a)
switch() { ctl a --user root:r auth "$1" >/dev/null 2>&1; }
switch enable

client c "etcd://job:j@$host"
client d "etcd://job:j@$host"
client w "etcd://job:j@$host"
for turn in disable enable; do
    ask c acquire 1 released 9000 0
    ask c acquire 2 kept 4000 0 kept
    ask c acquire 3 renewed 9000 0
    ask d acquire 1 waited 9000 0
    tell w acquire 1 waited 9000 30000 kept
    eventually 10 eval 'ask d status waited; [[ $answer == *waiters=1* ]]'
    switch $turn
    ask c release 1
    is "$answer" ok "$turn: what was taken before is released"
    ask c renew 3 9000
    is "$answer" ok "$turn: and renewed"
    ask d release 1
    is "$answer" ok "$turn: and released to the next in the queue"
    hear w
    like "$answer" 'ok *' "$turn: who has it"
    ask w release 1
    is "$answer" ok "$turn: and gives it back"
    sleep 5
    ask c lost 2
    is "$answer" 'ok 0 not lost' "$turn: the keeper keeps what it holds"
    ask c release 2
    ask c release 3
    is "$answer" ok "$turn: to the end"
    ask c acquire 1 next 9000 0 kept
    like "$answer" 'ok *' "$turn: new locks are taken"
    ask c release 1
    ask d list -
    is "$answer" ok "$turn: nothing stays behind"
done

# records: the same role will do, and one that may only read is enough for reading
ctl a --user root:r role add looker >/dev/null
ctl a --user root:r role grant-permission --prefix=true looker read holdfast/ >/dev/null
ctl a --user root:r user add guest:g >/dev/null
ctl a --user root:r user grant-role guest looker >/dev/null
client g "etcd://guest:g@$host"
ask c acquire 1 noted 9000 0
ask c put 1 k value 3600000
is "$answer" ok 'a user with the role writes records'
ask g get noted k
like "$answer" 'ok \[k=value *' 'one that may only read reads them'
ask g records noted -
like "$answer" 'ok \[k=value *' 'and lists them'
ask c release 1

# a release that is denied: what stays behind ends with its ttl, though the client goes on taking locks
ask c acquire 1 left 6000 0 kept
ctl a --user root:r role revoke-permission --prefix=true locker holdfast/ >/dev/null
ask c release 1
like "$answer" 'HF_DENIED*' 'a release that is denied says so'
ctl a --user root:r role grant-permission --prefix=true locker readwrite holdfast/ >/dev/null
ask c acquire 2 other 6000 0 kept
like "$answer" 'ok *' 'the client takes other locks'
ask d acquire 1 left 6000 9500
like "$answer" 'ok *' 'the other is free after its ttl, and does not live with them'
done_testing
