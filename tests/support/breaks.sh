# breaks.sh - what a break of a hold must do in every store with a server: to a holder that is alive, stopped, cut
# off. Sourced after the lib.sh of the store, which defines url NAME.
#
#   breaks SERVER PROXY TTL_MS [SOON_S]   holders go through the proxy; in SOON_S seconds one that is alive hears
#                                         of it (a third of the ttl, unless it is given)
# shellcheck shell=bash

now_ms() { date +%s%3N; }
# heard CLIENT LEASE : its keeper knows that it is lost
heard() { ask "$1" lost "$2" && [[ $answer != 'ok 0 '* ]]; }
waits() { # CLIENT NAME : somebody does
    eventually 10 eval "ask $1 status $2; [[ \$answer == *waiters=1* ]]"
    ok $? "somebody waits for $2"
}
# held_until CLIENT LEASE : in ms since 1970, and not a moment too late
held_until() {
    local before
    before=$(now_ms)
    ask "$1" left "$2"
    echo $((before + ${answer#ok }))
}

breaks_alive() {
    ask h acquire 1 alive "$ttl" 0 kept
    t=$(token)
    ask h acquire 2 sibling "$ttl" 0 kept
    tell w acquire 1 alive "$ttl" 60000
    waits b alive
    ask b break alive $((t + 1))
    like "$answer" 'HF_LOST*' 'a break of another hold changes nothing'
    ask b break alive "$t"
    like "$answer" 'ok *label=*detached=0 foreign=0 again=0' 'a hold is broken'
    eventually "$soon" heard h 1
    like "$answer" 'ok 3 an operator broke the lock' 'its holder hears of it'
    ask h who 1
    is "$answer" 'ok broken by operator: test' 'and by whom'
    ask b status alive
    like "$answer" 'ok \[alive held=1 *waiters=1*broken=operator\]' 'it stays, and shows'
    ask h put 1 k late
    is "$answer" ok 'and may still write a record'
    ask b break alive "$t"
    like "$answer" 'ok *again=1' 'breaking it again does no harm'
    silent w
    ok $? 'nobody gets it before it is released'
    ask h release 1
    like "$answer" 'HF_LOST*broken by operator: test*' 'the release says what happened'
    hear w
    above "$(token)" "$t" 'and passes it on'
    ask w renew 1 "$ttl"
    is "$answer" ok 'to a hold that is a good one'
    ask w release 1
    ask h lost 2
    like "$answer" 'ok 0 *' 'the sibling never heard of it'
}

# Who hears of it and does nothing: its siblings live on, and it does not.
breaks_idle() {
    ask h acquire 1 idle "$ttl" 0 kept
    t=$(token)
    ask b break idle "$t"
    eventually "$soon" heard h 1
    tell w acquire 1 idle "$ttl" 60000
    hear w
    above "$(token)" "$t" 'one that is not released ends with its time'
    ask w release 1
    ask h lost 2
    like "$answer" 'ok 0 *' 'although a sibling lives on'
    ask h renew 2 "$ttl"
    is "$answer" ok 'and is renewed'
    ask h release 1
    like "$answer" 'HF_LOST*' 'a release that comes late finds nothing'
}

# breaks_away NAME AWAY BACK : commands that take the holder away, and bring it back
breaks_away() {
    local until
    ask h acquire 1 "$1" "$ttl" 0 kept
    t=$(token)
    until=$(held_until h 1)
    tell w acquire 1 "$1" "$ttl" 60000
    waits b "$1"
    eval "$2"
    ask b break "$1" "$t"
    like "$answer" 'ok *' "$1: it is broken"
    hear w 60
    above "$(now_ms)" $((until - 1)) "$1: the next holder has it when its time was over, and no sooner"
    like "$answer" 'ok *' "$1: but it has it"
    eval "$3"
    ask h left 1
    is "$([ "${answer#ok }" -le 0 ] && echo over)" over "$1: there are never two valid leases"
    ask w renew 1 "$ttl"
    is "$answer" ok "$1: the next hold is a good one"
    eventually 15 heard h 1
    ok $? "$1: the old one is told that it is lost"
    ask h release 1
    like "$answer" 'HF_LOST*' "$1: and gives nothing back"
    ask w renew 1 "$ttl"
    is "$answer" ok "$1: which the next one would notice"
    ask w release 1
}

breaks_now() {
    ask h acquire 1 now "$ttl" 0 kept
    t=$(token)
    tell w acquire 1 now "$ttl" 60000
    waits b now
    ask b break now "$t" now
    like "$answer" 'ok left=0 *' 'a break may end the hold at once'
    hear w 5
    above "$(token)" "$t" 'the next one has it at once'
    eventually "$soon" heard h 1
    like "$answer" 'ok 3 *' 'the old one hears that it was broken'
    ask h who 1
    is "$answer" 'ok broken by operator: test' 'and by whom'
    ask h put 1 k late
    like "$answer" 'HF_LOST*' 'it writes no record any more'
    ask h release 1
    ask w renew 1 "$ttl"
    is "$answer" ok 'and takes nothing from the next one'
    ask w release 1
    ask b break now "$t" now
    like "$answer" 'HF_LOST*' 'what is over cannot be broken'
}

# A job of `run` is ended as by any loss, and the next one begins when it has ended.
breaks_run() {
    local first second
    "$hf" --store "$(url "$1")" run --ttl "${ttl}ms" --grace 500ms job -- sh -c \
        'trap "date +%s%3N >\"$1.end\"; exit 0" TERM; : >"$1.on"; while :; do sleep 0.05; done' - "$dir/job" \
        2>"$dir/run.err" &
    first=$!
    eventually 20 test -e "$dir/job.on"
    ask b status job
    t=$(echo "$answer" | sed -n 's/.*token=\([0-9]*\).*/\1/p')
    "$hf" --store "$(url "$1")" run --ttl "${ttl}ms" --wait 60s job -- sh -c 'date +%s%3N >"$1"' - "$dir/next" &
    second=$!
    waits b job
    ask b break job "$t"
    wait "$first"
    is $? 123 'run: the job is ended, and the exit code says why'
    like "$(cat "$dir/run.err")" '*broke*' 'run: so does it'
    wait "$second"
    is $? 0 'run: the next one has its turn'
    [ "$(cat "$dir/job.end")" -le "$(cat "$dir/next")" ]
    ok $? 'run: after the first has ended'
}

breaks() {
    ttl=$3
    soon=${4-$((ttl / 3000 + 1))}
    client h "$(url "$2")"
    client w "$(url "$1")"
    client b "$(url "$1")"
    breaks_alive
    breaks_idle
    breaks_now
    breaks_away stopped 'kill -STOP ${client_pid[h]}' 'kill -CONT ${client_pid[h]}'
    breaks_away 'cut-off' 'proxy '"$2"' mode deaf; proxy '"$2"' strand' 'proxy '"$2"' mode pass'
    breaks_run "$1"
}
