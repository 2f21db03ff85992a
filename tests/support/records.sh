# records.sh - tests of records that several stores have in common. Sourced by bash after the lib.sh of a
# store.
#
#   many_records COUNT     client a writes and reads that many
# shellcheck shell=bash disable=SC2154 # of stage.sh

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
