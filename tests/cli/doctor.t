#!/bin/bash
# `holdfast doctor` and --require on the embedded store: what deserves a finding gets it, and what does
# not does not.
set -u
. "$(dirname "$0")/cmd.sh"
. "$(dirname "$0")/../support/doctor.sh"
build=$(cd "${BUILD:-build}" && pwd)
url=file:$dir/store

# Looking makes nothing.
examine "$url"
is "$rc" 0 'a store that is not there yet carries a lock for efficiency'
holds '.fit and .efficiency and (.correctness | not) and .for == "efficiency"' 'and none for correctness'
check 'and still is not there' not test -e "$dir/store"
finds file.absent fence.none
fits_schema 'the answer is as its schema says'
holds '[.facts[] | has("found")] | any | not' 'facts judge nothing'
holds '[.verdicts[] | has("value")] | any | not' 'and verdicts are apart'

# A store in use, and a fence that is whole.
run holdfast --store "$url" run job -- "$hf" fence write "$dir/report" -- echo one
is "$rc" 0 'a job writes through its fence'
examine "$url" --fence "$dir/report"
is "$rc" 0 'with a fence it is fit for correctness'
holds '.for == "correctness" and .correctness' 'which is what a named fence is about'
spares file.absent fence.none fence.problem fence.unread file.memory file.denied file.unsafe file.full \
    file.filling file.inodes file.damaged file.ahead file.stale file.network client.ttl client.grace \
    latency.too-slow latency.slow store.closed store.silent store.quarantine
holds '[.verdicts[] | select(.level != "advice")] == []' 'nothing is wrong, and nothing was left unchecked'

# Fences that are not.
examine "$url" --fence "$dir/other"
is "$rc" 1 'a fence without a mark'
finds fence.problem
holds '.verdicts[] | select(.rule == "fence.problem") | .change | contains("fence write")' 'has a remedy'
run holdfast --store "file:$dir/second" run job -- "$hf" fence write "$dir/theirs" -- echo one
examine "$url" --fence "$dir/theirs"
is "$rc" 1 'a fence of another store'
holds '.verdicts[] | select(.rule == "fence.problem") | .key == "fence.problem.issuer"' 'is one of another issuer'
chmod o+w "$dir/report"
examine "$url" --fence "$dir/report"
is "$rc" 1 'a file that everybody may write'
chmod o-w "$dir/report"
examine "$url" --for correctness --fence "redis://:sesame@127.0.0.1:1#key"
is "$rc" 1 'a fence that cannot be reached is none'
unchecked fence.unread
holds '.fit == null and .correctness == null' 'correctness is not shown, rather than refuted'
unlike "$(cat "$dir/doctor.json")" sesame 'the password of a fence is not shown'
sqlite3 "$dir/shop.db" 'CREATE TABLE orders (id INTEGER PRIMARY KEY, n INTEGER)'
examine "$url" --db "sqlite:$dir/shop.db" --fence orders
is "$rc" 1 'a table without a fence'
holds '.verdicts[] | select(.rule == "fence.problem" and .where == "orders") | .change | contains("fence sql")' \
    'the remedy is its migration'
run holdfast fence sql --dialect sqlite --table orders
sqlite3 -bail "$dir/shop.db" <"$dir/out"
examine "$url" --db "sqlite:$dir/shop.db" --fence orders --fence "$dir/report"
is "$rc" 0 'a table and a file, both fenced'

# The client's arithmetic.
examine "$url" --ttl 10s --grace 9s
is "$rc" 1 'a grace that does not fit the ttl'
finds client.grace
examine "$url" --ttl 1ms
is "$rc" 64 'a ttl that is none'

# The directory.
mkdir -m 0777 "$dir/wide"
examine "file:$dir/wide"
is "$rc" 1 'a directory that everybody may write'
finds file.unsafe store.closed
run holdfast --store "file:$dir/ahead" run job -- true
# shellcheck disable=SC2016
run holdfast --store "file:$dir/ahead" repair --above 9000000000000000
is "$rc" 0 'a store is repaired with a token of the far future'
examine "file:$dir/ahead"
is "$rc" 0 'tokens that are ahead of the clock do no harm'
finds file.ahead
run holdfast --store "file:$dir/harmed" run job -- true
echo nonsense >"$dir/harmed/floor"
examine "file:$dir/harmed"
is "$rc" 1 'a floor that is damaged'
finds file.damaged
mkdir -p "$dir/store/alive"
perl -MPOSIX -e 'for (1 .. 1001) { mkfifo(sprintf("%s/dead%012x", $ARGV[0], $_), 0600) or die }' "$dir/store/alive"
examine "$url"
finds file.stale
is "$(find "$dir/store/alive" -name 'dead*' | wc -l)" 1001 'which looking does not remove'
find "$dir/store/alive" -name 'dead*' -delete
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    mkdir "$dir/mount"
    mounted() { # COMMANDS [ARG] : what is said of a store in the mount that they make at $m
        # shellcheck disable=SC2016 # the inner shell's
        run unshare -m sh -c "$1"' && "$hf" --store "file:$m/s" doctor --json; rc=$?; umount "$m"; exit $rc' sh "${2-}"
        cp "$dir/out" "$dir/doctor.json"
    }
    export m=$dir/mount hf dir
    # shellcheck disable=SC2016
    small() { mounted 'mount -t tmpfs -o "$1" tmpfs "$m"' "$1"; } # OPTIONS : a tmpfs of its own
    small size=128m,mode=0700
    finds file.memory
    spares file.full file.filling file.inodes file.layer file.network
    small size=16m,mode=0700
    finds file.filling
    small size=256k,mode=0700
    is "$rc" 1 'a full disk carries no lock'
    finds file.full
    small size=8m,nr_inodes=4,mode=0700
    finds file.inodes
    small size=128m,ro,mode=0700
    finds file.denied
    # shellcheck disable=SC2016
    mounted 'mount -t tmpfs tmpfs "$m" && mkdir "$m/l" "$m/u" "$m/w" "$m/s" &&
        mount -t overlay -o "lowerdir=$m/l,upperdir=$m/u,workdir=$m/w" overlay "$m/s"'
    is "$rc" 0 "a container's own layer carries a lock"
    finds file.layer
    spares file.network file.memory
else
    skip 13 'mounting takes root'
fi

# A network file system cannot be had here. One of FUSE stands for it: whether such a one is shared with other
# machines (sshfs) is not to be seen.
if [ "$(id -u)" -eq 0 ] && [ -e /dev/fuse ] && command -v bindfs >/dev/null; then
    mkdir "$dir/far"
    # shellcheck disable=SC2016
    mounted 'bindfs "$dir/far" "$m"'
    is "$rc" 1 'a network file system carries no lock, also before the first'
    finds file.network
    spares file.layer file.memory
    # shellcheck disable=SC2016
    mounted 'mkdir -p "$dir/far/s" && bindfs "$dir/far" "$m"'
    is "$rc" 1 'nor in a directory that is there'
    finds file.network store.closed
    spares file.unsafe
else
    skip 8 'no FUSE, or no bindfs'
fi

# A container's clock: BOOTTIME is another, which looks like sleep.
if [ "$(id -u)" -eq 0 ] && unshare -T --boottime 1000 true 2>/dev/null; then
    run unshare -T --boottime 1000 "$hf" --store "$url" doctor --json
    cp "$dir/out" "$dir/doctor.json"
    finds client.namespace client.suspend
else
    skip 2 'no time namespaces here'
fi
examine "$url"
spares client.namespace

# Whether somebody keeps the machine's clock right is not ours to change: adjtimex is told for it.
# shellcheck disable=SC2016
echo '#include <sys/timex.h>
#include <stdlib.h>
int adjtimex(struct timex *how) { how->status = getenv("SYNCED") ? 0 : STA_UNSYNC; return 0; }' >"$dir/told.c"
if cc -shared -fPIC -o "$dir/told.so" "$dir/told.c"; then
    told() { # [VARIABLE=VALUE] : doctor, with a clock that is told to be so
        run env LD_PRELOAD="$dir/told.so" ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" "$@" \
            "$hf" --store "$url" doctor --json
        cp "$dir/out" "$dir/doctor.json"
    }
    told
    finds clock.unsynced
    told SYNCED=1
    spares clock.unsynced
else
    skip 2 'no compiler'
fi

# For people.
run holdfast --store "$url" doctor --for correctness
is "$rc" 1 'for people: the exit code'
has "$out" 'for correctness  not fit' 'for people: the verdict'
has "$out" 'problem: no fence is named' 'for people: what was found'
like "$out" '^    why     .' 'for people: why it matters'
like "$out" '^    change  .*--fence FILE' 'for people: what to change'
unlike "$out" '\[y/n\]' 'nobody is asked off a terminal'
run holdfast --store "redis://:sesame@127.0.0.1:1" doctor
is "$rc" 69 'a store that cannot be reached'
unlike "$out$err" sesame 'no password is shown'
has "$out" 'could not check' 'and nothing is fine'
examine "redis://:sesame@127.0.0.1:1"
is "$rc" 69 'in JSON too'
holds '.fit == null and (.error | contains("refused"))' 'with the error'
fits_schema 'which is as its schema says'

examine nonsense:
is "$rc" 64 'no store at all'
holds '.fit == null and .error != null' 'is an error in JSON, too'
fits_schema 'which is as its schema says'

# A store that cannot be asked.
HOLDFAST_STORE_PATH=$build/tests/plugins examine "moody:$dir/mood" --fence "$dir/report"
is "$rc" 1 'a store of another kind'
finds store.silent

# Usage.
for words in '--for speed' '--fence redis://h' '--db sqlite:x' 'name' '--fence='; do
    # shellcheck disable=SC2086
    run holdfast doctor $words
    is "$rc" 64 "doctor $words"
done

# --require
run holdfast run --require correctness job -- true
refused 78 'no fence is named' 'correctness without a fence is refused'
run holdfast run --fence "$dir/report" job -- true
refused 64 'needs --require' 'a fence without it is a mistake'
for command in run once elect; do
    run holdfast "$command" --require correctness --fence "$dir/other" job2 -- touch "$dir/ran"
    refused 78 'has no mark' "$command --require: a fence that is not there"
done
run holdfast acquire --require correctness --fence "$dir/other" job2
refused 78 'has no mark' 'acquire --require: likewise'
is "$out" '(exit 78)' 'and the shell hears of it'
check 'nothing was run' not test -e "$dir/ran"
run holdfast status --free job2
is "$rc" 0 'nothing is held'
for command in run once 'elect --restart no'; do
    # shellcheck disable=SC2086
    run holdfast $command --require correctness --fence "$dir/report" job3 -- touch "$dir/ran"
    is "$rc" 0 "$command --require: met"
    check "$command --require: ran" rm "$dir/ran"
done
run holdfast acquire --require correctness --fence "$dir/report" --json job4
is "$rc" 0 'acquire --require: met'
run holdfast run --events "$dir/events" --require correctness --fence "$dir/other" job5 -- true
check 'the events tell of the refusal' grep -q 'has no mark' "$dir/events"
run holdfast --store "$url" run --require correctness --db "sqlite:$dir/shop.db" --fence orders job6 -- true
is "$rc" 0 '--require with a table'

# The questions, on a terminal.
ask() { # ANSWERS [OPTION...] : a line for each
    local answers=$1
    shift
    printf '%b' "$answers" | script -qefc "$hf --store $url doctor $*" /dev/null >"$dir/screen" 2>&1
    rc=$?
    out=$(tr -d '\r' <"$dir/screen")
}
ask 'y\n'
is "$rc" 0 'a double run is harmless: efficiency'
like "$(tail -n 1 <<<"$out")" "holdfast --store $url run NAME -- CMD" 'ends in a plain run'
ask 'n\ny\n'
has "$out" 'You need no lock: a unique constraint' 'it can be idempotent: no lock'
has "$out" 'holdfast idem sql' 'but a constraint'
ask 'n\nn\ny\n'
is "$rc" 1 'the resource can refuse: correctness, for which a fence has to be named'
has "$out" "holdfast --store $url run --require correctness --fence RESOURCE NAME -- CMD" 'ends in --require'
ask 'n\nn\ny\n' "--fence $dir/report"
is "$rc" 0 'with the fence it is fit'
has "$out" "--fence $dir/report NAME -- CMD" 'and the line names it'
ask 'n\nn\nn\n'
has "$out" 'You need no lock: none can make this right' 'nothing can refuse: no lock helps'
has "$out" 'a queue' 'what does'
ask '' '--for efficiency'
unlike "$out" 'y/n' 'with --for nobody is asked'
ask 'perhaps\nwell\nhm\n'
is "$rc" 64 'no answer is no answer'

done_testing
