#!/bin/bash
# node.t - what may go wrong in Node: waits beside files, timers beside quick locks, a frozen server, worker threads, exit
# with a lease held, leases that nobody releases, a library that does not fit; npm installs it, and its README is true.
# run: once
set -u
# shellcheck source=tests/bindings/lib.sh
. "$(dirname "$0")/lib.sh"
prepare
two_stores
trap_() { timeout 100 node --expose-gc --disallow-code-generation-from-strings "$here/node/traps.js" "$@" 2>&1; }

# Where NO_THREADS is set, no thread can be had.
cat >"$dir/threads.c" <<'END'
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");

    return getenv("NO_THREADS") != NULL ? EAGAIN : real(thread, attributes, start, argument);
}
END
cc -D_GNU_SOURCE -shared -fPIC -o "$dir/threads.so" "$dir/threads.c" || echo 'Bail out! threads.c'

for store in "${store_url[file]}" "${store_url[redis]}"; do
    kind=${store%%:*}
    is "$(trap_ waiting "$store")" 'read Cancelled' "$kind: 64 waiting acquires, and files still answer"
    is "$(trap_ workers "$store")" 'Busy free' "$kind: a worker that ends gives back what it holds and leaves the queue"
    for how in '' now; do
        like "$(trap_ exits "$store" $how)" 'held bigint' "$kind: a process that exits${how:+ at once} with a lease held ..."
        "$hf" --store "$store" run -n 'left behind' -- true
        ok $? "$kind: ... has given it back"
    done
    like "$(trap_ collected "$store")" '*ResourceWarning true*free' "$kind: the garbage collector gives back, with a warning"
    is "$(trap_ signals "$store")" 'Busy Busy Busy Lost Lost' "$kind: a lease lives while somebody has its signal"
    is "$(trap_ losses "$store")" 'Lost closed
thrown
Lost closed none left' "$kind: 100 leases lost at once, here and in a worker; workers that watch theirs are terminated"
    is "$(trap_ closed "$store")" 'Cancelled Invalid true closed
Lost closed' "$kind: closing the store ends its waits and its leases"
    is "$(trap_ timers "$store")" 'true true' "$kind: a loop of quick locks lets timers run"
    is "$(trap_ together "$store" | sort | uniq -c | tr -s ' ')" ' 3 64' "$kind: 64 locks at once, several times"
    is "$(NODE_NO_WARNINGS=1 trap_ once "$store")" '1 number 1' "$kind: once, 64 at once: one does the work, and all know of it"
    is "$(NODE_NO_WARNINGS=1 trap_ onceFails "$store")" 'TypeError RangeError Invalid Lost
Lost Cancelled true' "$kind: once: the error of the work comes first, it hears of a loss, and a wait can be aborted"
    like "$(trap_ onceCollected "$store")" '*ResourceWarning*free' "$kind: once: work that was dropped gives the lock back"
    is "$(NODE_NO_WARNINGS=1 trap_ onceExits "$store" close)" 'Lost closed' "$kind: once: closing the store ends the lease"
    trap_ onceExits "$store" exit
    "$hf" --store "$store" run -n 'left once' -- true
    ok $? "$kind: once: who exits in the middle leaves the lock free"
    is "$(NODE_NO_WARNINGS=1 trap_ onceTerminated "$store")" 'none' "$kind: once: workers that are terminated leave nothing behind"
    is "$(trap_ terminated "$store")" 'alive' "$kind: workers that are terminated as a wait begins"
    is "$(NODE_NO_WARNINGS=1 trap_ views "$store" | xargs)" '1,2,255 1,2,255 1,2,255,0 9,1,2,255,9' "$kind: a record has the bytes of any view"
    is "$(NODE_NO_WARNINGS=1 trap_ refused "$store" | xargs)" 'TypeError free TypeError free TypeError free TypeError alive' \
        "$kind: what is no signal, or no output, leaves nothing held or open"
    is "$(NODE_NO_WARNINGS=1 LD_PRELOAD=$dir/threads.so trap_ threadless "$store")" 'done threadless NoMemory' \
        "$kind: where no thread can be had, what is open is closed all the same"
    like "$(trap_ busy "$store")" '*fine symbol*' "$kind: a release waits for renewals under way"
done
is "$(trap_ frozen "${store_url[redis]}")" 'brief' 'a server that is frozen does not hold up the event loop'
is "$(trap_ crowd "${store_url[file]}")" 'counted 200' 'workers take turns'
is "$(ulimit -n 300 && trap_ crowded "${store_url[file]}")" 'Cancelled NoMemory' 'where there are no descriptors left, a wait says so'

is "$(node --input-type=module -e "import { open, Busy } from '$made/node/index.js'; console.log(typeof open, Busy.name)")" 'function Busy' \
    'import finds each name'

mkdir "$dir/other"
for version in 0.0.9 1.0.0; do
    another_library $version whole
    cp "$dir/other.so" "$dir/other/libholdfast.so.0"
    like "$(LD_LIBRARY_PATH=$dir/other node -e "require('$made/node')" 2>&1)" \
        "*Error: holdfast: this addon needs libholdfast 0.*, and libholdfast.so.0 is $version*" "libholdfast $version is refused at load"
done
another_library 0.1.0 bare
cp "$dir/other.so" "$dir/other/libholdfast.so.0"
like "$(LD_LIBRARY_PATH=$dir/other node -e "require('$made/node')" 2>&1)" '*Error: holdfast: the addon does not go with*hf_*' \
    'so is one without a function'

# npm compiles a copy of the folder; then a program that requires it finds it, and loads it.
mkdir "$dir/app"
cp -r "$root/bindings/node" "$dir/package"
rm -f "$dir/package/holdfast.node"
(cd "$dir/app" && echo '{}' >package.json && npm install --offline --no-audit --no-fund --install-links "$dir/package") >"$dir/npm" 2>&1
is "$(cd "$dir/app" && node -p 'require("holdfast").version')" "$("$hf" version | sed 's/.* //')" 'npm installs it from its folder'
NODE_PATH=$dir/app/node_modules examples js "$root/bindings/node/README.md" node
done_testing
