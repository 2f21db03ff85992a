# records.sh - writes of records that come too late, the same for every store behind the proxy. Sourced after
# the store's lib.sh, which has what hold_over and end_hold need; the test defines those two.
#
#   hold_over LOCK   true once the hold is over in the store
#   end_hold LOCK    ends it there; its holder does not know
#
# Client a speaks through the proxy p, client b to the server.
# shellcheck shell=bash disable=SC2154 # what stage.sh sets

# A put that is on its way for longer than its lease lasts.
frozen_put() { # LOCK
    ask a acquire 1 "$1" 1000 0
    proxy p mode hold hostage
    tell a put 1 k hostage
    hear a
    proxy p mode pass
}

# late_records URL : of the server itself
late_records() {
    # a winner that froze on its way comes back when another has written
    frozen_put thaw
    like "$answer" 'HF_@(UNKNOWN|LOST|UNREACHABLE)*' 'a put that does not arrive within the lease is not ok'
    ask b acquire 1 thaw 20000 5000
    ask b put 1 k 'done'
    is "$answer" ok 'the next holder writes'
    ask b release 1
    proxy p let
    above "$proxied" 0 'then the first one arrives'
    ask b get thaw k
    like "$answer" 'ok \[k=done *' 'and overwrites nothing'
    ask a release 1

    # the same, if nobody else wants the lock: the end of the hold is enough
    frozen_put ended
    eventually 10 hold_over ended
    proxy p let
    above "$proxied" 0 'a put that arrives when the hold is over'
    ask b get ended k
    like "$answer" 'ok now=*' 'is refused'
    ask a release 1

    # a late copy of an older number
    ask a acquire 1 copy 30000 0 kept
    proxy p mode hold running
    tell a put 1 k running
    eventually 10 eval 'proxy p held; [ "$proxied" -gt 0 ]'
    proxy p mode pass
    hear a
    is "$answer" ok 'a put that gets no answer is sent again'
    ask a put 1 k 'done'
    is "$answer" ok 'the next one is written'
    proxy p let
    is "$proxied" 1 'then the first copy of the first one arrives'
    ask b get copy k
    like "$answer" 'ok \[k=done * number=2 *' 'and undoes nothing'
    ask a release 1

    # a hold that ended in the store, unknown to its holder
    ask a acquire 1 deleted 20000 0
    ask a put 1 k before
    end_hold deleted
    ask a put 1 k after
    like "$answer" 'HF_LOST*' 'a put after the hold ended: lost'
    ask b acquire 1 deleted 20000 0
    ask a put 1 k after
    like "$answer" 'HF_LOST*' 'likewise when it is held by another'
    ask b get deleted k
    like "$answer" 'ok \[k=before *' 'and nothing was written'
    ask b release 1

    # a process that was stopped, and its keeper with it
    client f "$1"
    ask f acquire 1 stopped 1000 0 kept
    kill -STOP "${client_pid[f]}"
    ask b acquire 1 stopped 20000 10000
    ask b put 1 k 'done'
    kill -CONT "${client_pid[f]}"
    ask f put 1 k running
    like "$answer" 'HF_LOST*' 'a process that was stopped finds that it has lost'
    ask b get stopped k
    like "$answer" 'ok \[k=done *' "and its successor's record stands"
    ask b release 1
}
