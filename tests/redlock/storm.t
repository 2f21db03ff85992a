#!/bin/bash
# storm.t - thousands of holds over five real servers, while clients are killed and frozen and servers are
# restarted (with their data and without), frozen, and cut off in either direction.
# run: long
# shellcheck disable=SC2317 # functions that the storm uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/storm.sh"

nodes 3 3000
redis_start n4 --appendonly yes --appendfsync always
redis_start n5
calm n4 3000
calm n5 3000
proxy_start p2 n2
proxy_start p5 n5
url=$(redlock '?max_ttl=3s' n1 p2 n3 n4 p5)

# Never more than two at once, those in quarantine included; except where it says so.
turn=0
fault() {
    turn=$((turn + 1))
    case $((turn % 6)) in
    0) # forgets everything: no vote for 3 s
        redis_stop n1 KILL
        redis_again n1
        sleep 4
        ;;
    1) # comes back with what it knew
        redis_stop n4 KILL
        sleep 1
        redis_again n4
        sleep 4
        ;;
    2)
        kill -STOP "$(pid n3)" "$(pid n1)"
        sleep 2
        kill -CONT "$(pid n3)" "$(pid n1)"
        sleep 0.5
        ;;
    3) # one in each direction
        proxy p2 mode mute
        proxy p5 mode deaf
        sleep 2
        proxy p2 mode pass
        proxy p5 mode pass
        sleep 0.5
        ;;
    4)
        redis_stop n5 KILL
        redis_again n5
        kill -STOP "$(pid n4)"
        sleep 2
        kill -CONT "$(pid n4)"
        sleep 2
        ;;
    5) # no majority
        kill -STOP "$(pid n1)" "$(pid n3)" "$(pid n4)"
        sleep 2
        kill -CONT "$(pid n1)" "$(pid n3)" "$(pid n4)"
        sleep 1
        ;;
    esac
}
storm redlock "$url" 3000 600 1500 fault
above "$turn" 11 'every fault came twice'
done_testing
