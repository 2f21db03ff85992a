#!/bin/bash
# python.t - what may go wrong in Python: Ctrl-C, exit with a lease held, a thousand waiters, fork, threads, leases
# that nobody releases, a library that does not fit; pip installs it from its folder, and its README is true.
# run: once
# run: first
set -u
# shellcheck source=tests/bindings/lib.sh
. "$(dirname "$0")/lib.sh"
prepare
two_stores
file=${store_url[file]}
trap_() { timeout 100 python3 -X faulthandler "$here/python/traps.py" "$@" 2>&1; }

for store in "$file" "${store_url[redis]}"; do
    kind=${store%%:*}
    client holder "$store"
    ask holder acquire 1 held 30000 0 kept
    python3 "$here/python/traps.py" interrupted "$store" >"$dir/said" 2>&1 &
    victim=$!
    eventually 20 some_wait "$store"
    kill -INT $victim
    wait $victim
    is "$(cat "$dir/said")" 'interrupted soon' "$kind: Ctrl-C ends a wait, and the queue is left within 100 ms"
    ask holder status held
    like "$answer" '*waiters=0*' "$kind: nobody is in the queue any more"
    is "$(trap_ undisturbed "$store")" 'busy after the signal 1' "$kind: a signal that raises nothing leaves the wait alone"
    is "$(trap_ closed "$store")" "['Cancelled', 'Cancelled', 'Cancelled', 'Cancelled', 'Cancelled', True]" \
        "$kind: closing the store ends its waits, and says so afterwards"
    is "$(trap_ waits_at_exit "$store")" cancelled "$kind: the interpreter ends while a thread waits"
    gone holder
    for how in '' raise; do
        trap_ exits "$store" $how >"$dir/said"
        like "$(cat "$dir/said")" 'held *' "$kind: an interpreter that ends${how:+ by an error} with a lease held ..."
        "$hf" --store "$store" run -n 'left behind' -- true
        ok $? "$kind: ... has given it back"
    done
    is "$(trap_ collected "$store")" "['ResourceWarning: True']" "$kind: the garbage collector gives back, with a warning"
    is "$(trap_ once "$store")" "['held', 'failed', (False, 'held'), 'Lost', 'broken', False, 'KeyboardInterrupt', 'Cancelled']" \
        "$kind: a turn of once() ends as its scope does, and its wait like any other"
    is "$(trap_ threads "$store")" 'counted 320' "$kind: threads take turns, and look at leases that end"
    is "$(trap_ fork "$store" | grep -v Deprecation | grep -v 'os.fork()')" 'child [True, True, True, True] 0.0
parent still had it' "$kind: a forked child is told so, and takes nothing from its parent"
    is "$(trap_ kept "$store")" 'nothing stayed held' "$kind: a task that is cancelled as the lock is granted has given it back"
    is "$(trap_ copied "$store")" 'still held' "$kind: a copy of a lease is no second one"
    is "$(trap_ used_up "$store")" "['NoMemory', 'OSError']" "$kind: without a descriptor a lease is given back all the same"
    is "$(trap_ shared "$store")" "['Lost', 'RuntimeError', 'lost']" "$kind: one Lock in two threads gives back its own"
    is "$(trap_ fork_watched "$store" | grep -v 'os.fork()\|if os.fork\|if (child')" 'still held True
child 0
taken' "$kind: a forked child wakes nobody in its parent, and ends no wait"
done
is "$(trap_ found "${store_url[redis]}")" "['interrupted', 'interrupted', 'interrupted']" \
    'Ctrl-C while a server thinks is not an answer'
is "$(trap_ storm_once "$file")" alive 'Ctrl-C at any moment of a turn: the thread that waits outlives nothing that it uses'
is "$(trap_ crowd "$file")" 'turns 500' 'a thousand tasks wait: half are cancelled, half have their turn'
is "$(trap_ storm "$file")" 'caught 400' 'Ctrl-C at any moment: nothing stays held'

imported() { HOLDFAST_LIBRARY=$1 python3 -c 'import holdfast' 2>&1 | tail -n 1; }
for version in 0.0.9 1.0.0; do
    another_library $version whole
    like "$(imported "$dir/other.so")" "ImportError: holdfast: this module needs libholdfast 0.*, and *other.so is $version" \
        "libholdfast $version is refused at load, in a sentence"
done
another_library 0.1.0 bare
like "$(imported "$dir/other.so")" 'ImportError: holdfast: *has no hf_*' 'so is one without a function'
like "$(imported "$dir/nothing.so")" 'ImportError: holdfast: *install libholdfast0*' 'and one that is not there'

cp -r "$root/bindings/python" "$dir/source" # pip builds in the folder
/usr/bin/python3 -m pip install -q --no-build-isolation --no-index --no-deps --target "$dir/site" "$dir/source" >"$dir/pip" 2>&1
is "$(cd / && PYTHONPATH=$dir/site /usr/bin/python3 -c 'import holdfast; print(holdfast.__file__)')" \
    "$dir/site/holdfast/__init__.py" 'pip installs it from its folder'
[ -f "$dir/site/holdfast/py.typed" ]
ok $? 'with its types'
examples python "$root/bindings/python/README.md" python3
examples python "$root/README.md" python3
done_testing
