#!/bin/bash
# Sessions that are so short that the leader hears of them too seldom: a follower tells it only every half tick whom it
# has heard from. There is no fault at all, so no hold may end before its holder gives it back.
# run: first
# run: once
# shellcheck disable=SC2317 # what eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"

# A server that allows no session that long.
zk_start a tickTime=500 maxSessionTimeout=1500
client c "zookeeper://$(hosts a)"
ask c acquire 1 short 5000 0
like "$answer" 'HF_UNSUPPORTED*longest session, 1.5s, is too short for a lease at a tick of 2s*' \
    'sessions that are too short for the tick are refused'
client d "zookeeper://$(hosts a)?tick=500ms"
ask d acquire 1 short 5000 0
like "$answer" 'ok *' 'and not if the tick is known to be shorter'
ask d left 1
above 1001 "${answer#ok }" 'which makes short leases (ms)'
gone d
zk_stop a

zk_ensemble e tickTime=2000 minSessionTimeout=100

# Whether a session ends between two reports depends on when the leader began: hence several leaders. A machine that
# is busy for half a second costs holds whatever the leader hears: hence three tries. That no two overlap is no
# matter of tries.
holds() { # TTL_MS HELD LOST : of 36 at least HELD are granted, and fewer than LOST are lost
    local i followers=() overlapped=0
    for i in 1 2 3; do
        [ "$(zk_mode "e$i")" != follower ] || followers+=("e$i")
    done
    is "${#followers[@]}" 2 'three servers, two of them follow'
    for i in 1 2 3; do
        read -r _ held _ lost _ overlaps <<<"$("$build/tests/zookeeper/tool_overlap" \
            "zookeeper://$(hosts "${followers[0]}")" "zookeeper://$(hosts "${followers[1]}")" \
            12 3 "$1" 2500 2>"$dir/err")"
        [ "$overlaps" = 0 ] || overlapped=$((overlapped + 1))
        [ "$held" -lt "$2" ] || [ "$lost" -ge "$3" ] || break
        echo "# try $i: held $held, lost $lost"
    done
    above "$held" $(($2 - 1)) "a ttl of $1 ms: holds were granted $(head -n 1 "$dir/err")"
    is "$overlapped" 0 'no two overlap'
    above "$3" "$lost" 'and as good as none is lost'
}
settled() {
    local i count=0
    for i in 1 2 3; do
        [ "$(zk_mode "e$i")" = follower ] && count=$((count + 1))
    done
    [ "$count" -eq 2 ]
}

# A busy machine is late now and then for a ttl of 300 ms: some are lost, and still no two overlap.
for ttl in 600 300 300; do
    eventually 60 settled
    case $ttl in
    600) holds $ttl 36 4 ;;
    *) holds $ttl 24 24 ;;
    esac
    for i in 1 2 3; do
        [ "$(zk_mode "e$i")" = leader ] || continue
        zk_stop "e$i"
        zk_launch "e$i"
        break
    done
done
done_testing
