# break.sh - a hold is broken while its holder is alive, frozen or cut off: never are there two valid
# leases. Sourced by bash after stage.sh. Each takes the URL of the store, TTL_MS being a ttl that it grants.
#
#   break_alive URL TTL_MS    the holder hears by whom, nobody else has the lock before it is released
#   break_frozen URL TTL_MS   nobody has it before the frozen holder's time is over
#   break_cut URL TTL_MS NEAR_URL CUT MEND
#                             nor before that of one that cannot be reached: the holder uses NEAR_URL, and
#                             CUT and MEND are commands that cut it off and bring it back
#   break_run URL TTL         holdfast run: TERM and grace, exit 123, and the next one in the queue
#   break_idle URL TTL_MS     a holder that hears of it and does nothing: it ends, and its siblings do not
#   break_now URL TTL_MS      it is ended at once, its holder hears by whom
#   break_twice URL TTL_MS    two holds in a row are ended at once: both holders, "first" and "second", hear by whom, and
#                             live on: what they tell the store about it is not waited for
# shellcheck shell=bash disable=SC2154 # hf, dir, answer and others are of stage.sh

# broken NAME : its lease 0 is lost because somebody broke it
broken() { ask "$1" lost 0 && [[ $answer == 'ok 3 '* ]]; }
# waiting_for NAME URL : somebody waits for the lock
waiting_for() { "$hf" --store "$2" status "$1" --json | jq -e ".waiters >= 1" >/dev/null; }

break_alive() {
    local url=$1 ttl=$2 first next
    client alive "$url" && client next "$url"
    ask alive acquire 0 job "$ttl" 0 kept
    first=$(token)
    tell next acquire 0 job "$ttl" 60000
    answer=$("$hf" --store "$url" break job --token "$first" --reason 'it hangs' 2>&1)
    is $? 0 'a hold is broken'
    like "$answer" 'broke "job", held by *(token '"$first"')*passes on*' 'and it is said what happens next'
    answer=$("$hf" --store "$url" status job)
    like "$answer" '*broken *by *@*: it hangs*' 'status tells by whom'
    answer=$("$hf" --store "$url" list --json)
    is "$(jq -r '.[0].broken.reason' <<<"$answer")" 'it hangs' 'list --json, too'
    eventually 15 broken alive
    ok $? 'the holder hears of it'
    like "$answer" '*by *@*: it hangs' 'by whom, and why'
    silent next
    ok $? 'and nobody else has the lock before it is released'
    ask alive renew 0 "$ttl"
    like "$answer" 'HF_LOST*was broken by*' 'it is not renewed any more'
    ask alive release 0
    like "$answer" 'HF_LOST*was broken by*it hangs*' 'its release says so'
    hear next
    next=$(token)
    above "${next:-0}" "$first" 'then the next one has it'
    ask next renew 0 "$ttl"
    is "$answer" ok 'and can renew it'
    ask next break job "$first"
    like "$answer" 'HF_LOST*is held with another token: nothing was broken' 'a late break changes nothing'
    ask next renew 0 "$ttl"
    is "$answer" ok 'the next one did not notice'
    ask next release 0
    gone alive
    gone next
}

break_frozen() {
    local url=$1 ttl=$2 first
    client frozen "$url" && client after "$url"
    ask frozen acquire 0 ice "$ttl" 0 free
    first=$(token)
    kill -STOP "${client_pid[frozen]}"
    ask after break ice "$first"
    like "$answer" 'ok left=*' 'the hold of a frozen process is broken'
    ask after acquire 0 ice "$ttl" $((ttl + 30000))
    kill -CONT "${client_pid[frozen]}"
    above "$(token)" "$first" 'another has the lock when its time is over'
    ask frozen left 0
    is "$answer" 'ok 0' 'the frozen lease was not valid any more by then'
    ask frozen release 0
    ask after renew 0 "$ttl"
    is "$answer" ok 'and its late release takes nothing away'
    ask after release 0
    gone frozen
    gone after
}

break_cut() {
    local url=$1 ttl=$2 first
    client cut "$3" && client beyond "$url"
    ask cut acquire 0 far "$ttl" 0 kept
    first=$(token)
    $4
    ask beyond break far "$first"
    like "$answer" 'ok left=*' 'the hold of a client that is cut off is broken'
    ask beyond acquire 0 far "$ttl" $((ttl + 30000))
    above "$(token)" "$first" 'another has the lock when its time is over'
    ask cut left 0
    is "$answer" 'ok 0' 'the lease beyond the cut was not valid any more by then'
    $5
    ask cut release 0
    ask beyond renew 0 "$ttl"
    is "$answer" ok 'its late release takes nothing away'
    ask beyond release 0
    gone cut
    gone beyond
}

break_run() {
    local url=$1 ttl=$2 first job
    # The job is slow to end: whoever comes next has to wait for that.
    "$hf" --store "$url" run --ttl "$ttl" --grace 2s nightly -- bash -c \
        'trap "sleep 0.5; date +%s%N >\"$1/ended\"; exit 0" TERM; : >"$1/began"; while :; do sleep 0.05; done' - \
        "$dir" 2>"$dir/broken.err" &
    job=$!
    eventually 20 test -e "$dir/began"
    first=$("$hf" --store "$url" status nightly --json | jq .token)
    "$hf" --store "$url" run -w 60s nightly -- sh -c 'date +%s%N >"$1"' - "$dir/next" &
    "$hf" --store "$url" break nightly --token "$first" --reason 'deploy' >"$dir/out"
    wait $job
    is $? 123 'run: exit 123'
    wait $!
    is $? 0 'the next in the queue runs'
    answer=$(cat "$dir/broken.err")
    like "$answer" '*"nightly" was broken by *@*: deploy; ending bash*' 'it says by whom and why'
    above "$(cat "$dir/next")" "$(cat "$dir/ended" 2>/dev/null || echo 9999999999999999999)" \
        'the job had its grace, and was gone before the next began'
    above $(($(cat "$dir/ended" 2>/dev/null || echo 0) + 2000000000)) "$(cat "$dir/next")" \
        'and the lock passes on when it is gone, not when its time is over'
    rm -f "$dir/began"
}

break_idle() {
    local url=$1 ttl=$2 first
    client idle "$url" && client after "$url"
    ask idle acquire 1 sibling "$ttl" 0 kept
    ask idle acquire 0 lazy "$ttl" 0 kept
    first=$(token)
    ask after break lazy "$first"
    eventually 15 broken idle
    ok $? 'a holder hears of the break, and does nothing'
    ask after acquire 0 lazy "$ttl" $((ttl + 30000))
    above "$(token)" "$first" 'its hold ends with its time'
    ask idle renew 1 "$ttl"
    is "$answer" ok 'although a sibling lives on'
    ask idle release 0
    like "$answer" 'HF_LOST*' 'a release that comes too late finds nothing'
    ask after renew 0 "$ttl"
    is "$answer" ok 'and takes nothing away'
    ask after release 0
    gone idle
    gone after
}

break_now() {
    local url=$1 ttl=$2 first
    client old "$url" && client new "$url" && client by "$url"
    ask old acquire 0 hurry "$ttl" 0 kept
    first=$(token)
    tell new acquire 0 hurry "$ttl" 60000
    eventually 10 waiting_for hurry "$url"
    ask by break hurry "$first" now
    like "$answer" 'ok left=0 *' 'a hold is ended at once'
    hear new 10
    above "$(token)" "$first" 'and the next one has the lock'
    eventually 15 broken old
    like "$answer" '*by breaker: a test' 'who had it hears by whom it was broken'
    ask old put 0 k late
    like "$answer" 'HF_LOST*' 'it writes no record any more'
    ask old release 0
    ask new renew 0 "$ttl"
    is "$answer" ok 'and takes nothing from the next one'
    ask new release 0
    ask by break hurry "$first" now
    like "$answer" 'HF_LOST*nothing was broken' 'what is over cannot be broken'
    gone old
    gone new
    gone by
}

break_twice() {
    local first
    client first "$1" && client second "$1"
    ask first acquire 0 twice "$2" 0 free
    first=$(token)
    "$hf" --store "$1" break twice --token "$first" --reason one --now --yes >"$dir/out" 2>&1
    is $? 0 'a hold is ended at once'
    ask second acquire 0 twice "$2" 5000 free
    "$hf" --store "$1" break twice --token "$(token)" --reason two --now --yes >"$dir/out" 2>&1
    is $? 0 'and the next one, too'
    ask first renew 0 "$2"
    like "$answer" 'HF_LOST*was broken by *: one' 'the first holder hears who ended its hold'
    ask second renew 0 "$2"
    like "$answer" 'HF_LOST*was broken by *: two' 'and so does the second'
}
