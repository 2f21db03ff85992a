#!/bin/bash
# Waiting through what passes: too many connections, a frozen server, a restart.
# run: first
# run: once
# shellcheck disable=SC2317 # what eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"
zk_start a maxClientCnxns=4
url="zookeeper://$(hosts a)?tick=200ms"

# Four connections are all that the server allows from here.
for i in 1 2 3 4; do
    client "c$i" "$url"
done
out=$("$hf" --store "$url" run -n job -- true 2>&1)
is $? 69 'no connection is left: 69'
names_limit() { [[ $("$hf" --store "$url" run -n job -- true 2>&1) == *maxClientCnxns* ]]; }
eventually 30 names_limit # a busy server may not even close the connection in time
ok $? 'and the text names the limit'
tell c1 acquire 1 full 3000 60000 # another ttl takes a connection of its own
sleep 3
silent c1
ok $? 'who waits goes on waiting'
gone c4
hear c1
like "$answer" 'ok *' 'until a connection is free'
ask c1 release 1
"$hf" --store "$url" run -w 60s job -- true 2>"$dir/err" &
job=$!
sleep 6
kill -0 $job
ok $? 'a command that waits goes on waiting, too'
gone c3
wait $job
is $? 0 "until it finds a connection free: $(cat "$dir/err")"

# The server freezes for longer than any session lasts, and comes back.
ask c1 acquire 1 frozen 3000 0 kept
tell c2 acquire 1 frozen 3000 120000
eventually 20 eval 'ask c1 status frozen; [[ $answer == *waiters=1* ]]'
ok $? 'a second client waits'
kill -STOP "$(pid a)"
sleep 15
silent c2
ok $? 'the server freezes for 15 s: it waits on'
kill -CONT "$(pid a)"
ask c1 release 1
hear c2
like "$answer" 'ok *' 'and has its turn after that'
ask c2 release 1

# It is restarted, and stays away for a while.
ask c1 acquire 1 restart 3000 0 kept
tell c2 acquire 1 restart 3000 120000
eventually 20 eval 'ask c1 status restart; [[ $answer == *waiters=1* ]]'
zk_stop a
sleep 8
zk_launch a
zk_ready a
ask c1 release 1 # by then its session may have ended
hear c2
like "$answer" 'ok *' 'the server is restarted: the second client has its turn'
ask c2 release 1
done_testing
