# records.sh - tests of records that several stores have in common. Sourced by bash after the lib.sh of a
# store.
#
#   overtaken_by_another PATTERN   client a's put, held back by proxy p, comes when another has written
#   overtaken_by_the_end PATTERN   and when the hold has ended, though nobody wants the lock
#   stopped_with_its_keeper        the process is stopped and goes on when another has written
#   overtaken_by_itself PATTERN    client a's put of "running", held back, comes when it has written again
#   ended_unknown END_HOLD         END_HOLD LOCK ends the hold in the store, and its holder does not know
#   many_records COUNT             client a writes and reads that many
#
# Client a goes through proxy p, client b straight to the store, as $straight does. PATTERN is what the
# request of a put of "hostage" or "running" has in it, and no other request.
# shellcheck shell=bash disable=SC2154,SC2317 # of stage.sh; eventually calls by name

# frozen_put LOCK PATTERN : client a holds it for 2s, and its put is on its way for longer than that
frozen_put() {
    ask a acquire 1 "$1" 2000 0
    proxy p mode hold "$2"
    ask a put 1 k hostage
    proxy p mode pass
}

overtaken_by_another() {
    frozen_put thaw "$1"
    like "$answer" 'HF_@(UNKNOWN|LOST|UNREACHABLE)*' 'a put that does not arrive within the lease is not ok'
    ask b acquire 1 thaw 20000 30000
    like "$answer" 'ok *' 'the next one gets the lock'
    ask b put 1 k finished
    is "$answer" ok 'and writes'
    ask b release 1
    proxy p let
    above "$proxied" 0 'then the first one arrives'
    ask b get thaw k
    like "$answer" 'ok \[k=finished *' 'and overwrites nothing'
    ask a release 1
}

overtaken_by_the_end() {
    frozen_put ended "$1"
    ended_is_free() { ask b status ended && [ "$answer" = ok ]; }
    eventually 30 ended_is_free
    proxy p let
    above "$proxied" 0 'a put that arrives when the hold is over'
    ask b get ended k
    like "$answer" 'ok now=*' 'is refused'
    ask a release 1
}

stopped_with_its_keeper() {
    client f "$straight"
    ask f acquire 1 stopped 2000 0 kept
    kill -STOP "${client_pid[f]}"
    ask b acquire 1 stopped 20000 30000
    ask b put 1 k finished
    kill -CONT "${client_pid[f]}"
    ask f put 1 k running
    like "$answer" 'HF_LOST*' 'a process that was stopped finds that it has lost'
    ask b get stopped k
    like "$answer" 'ok \[k=finished *' "and its successor's record stands"
    ask b release 1
    gone f
}

overtaken_by_itself() {
    ask a acquire 1 copy 30000 0 kept
    proxy p mode hold "$1"
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
}

ended_unknown() {
    ask a acquire 1 deleted 20000 0
    ask a put 1 k before
    "$1" deleted
    ask a put 1 k after
    like "$answer" 'HF_LOST*' 'a put after the hold ended: lost'
    ask b acquire 1 deleted 20000 0
    ask a put 1 k after
    like "$answer" 'HF_LOST*' 'likewise when it is held by another'
    ask b get deleted k
    like "$answer" 'ok \[k=before *' 'and nothing was written'
    ask b release 1
}

many_records() {
    local i begun=$SECONDS bad=0
    ask a acquire 1 many 60000 0 kept
    for i in $(seq "$1"); do
        tell a put 1 "key:$i" "value-$i"
        # no more than a pipe holds
        [ $((i % 100)) -ne 0 ] || for _ in $(seq 100); do hear a && [ "$answer" = ok ] || bad=$((bad + 1)); done
    done
    is "$bad" 0 "$1 records are written"
    echo "# in $((SECONDS - begun)) s"
    begun=$SECONDS
    ask a records many -
    is "$(grep -o '\[key:[0-9]*=value-[0-9]* ' <<<"$answer" | sort -u | wc -l)" "$1" 'and listed'
    echo "# in $((SECONDS - begun)) s"
    ask a records many key:77
    is "$(grep -o '\[key:77[0-9]*=' <<<"$answer" | wc -l)" \
        "$(seq "$1" | grep -c '^77')" 'those whose keys begin alike, too'
    ask a get many "key:$1"
    like "$answer" "ok \[key:$1=value-$1 *" 'the last one is found'
    ask a list -
    like "$answer" 'ok \[many held=1 *\]' 'a listing of locks shows the lock alone'
    ask a release 1
    ask a acquire 1 many 60000 0
    like "$answer" 'ok *' 'the lock is taken as ever'
    ask a put 1 one-more x
    is "$answer" ok 'and one more record is written'
    ask a release 1
}
