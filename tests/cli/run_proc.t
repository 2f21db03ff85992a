#!/bin/bash
# Odd /proc file systems, and cgroups: the tree is ended before the next holder begins, and nobody else
# is touched.
# run: first
set -u
. "$(dirname "$0")/lib.sh"
# The search for leaks needs a /proc of its own.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
herd=$PWD/$(dirname "$0")/helpers/herd.pl
case $herd in //*) herd=${herd#"$PWD/"} ;; esac

unshare --mount --pid --fork true 2>/dev/null || {
    skip 1 'cannot make namespaces here'
    done_testing
    exit
}

# Who of the herd is alive, asked without /proc; each is one line. A dead one that is not reaped yet still has its
# number, so they are asked twice.
cat >"$dir/survivors" <<END
for pid in \$(cat \$place/herd); do
    kill -0 \$pid 2>/dev/null && sleep 0.5 && kill -0 \$pid 2>/dev/null && echo \$pid
done
true
END

# Ends a herd in a world of its own: first by --max-runtime, then because the supervisor is killed.
cat >"$dir/both" <<END
# A stranger: may not get a signal, whatever its number.
sh -c 'trap "echo hit >>\$place/hit" TERM INT HUP; while [ -e \$place/go-on ]; do sleep 0.1; done' &
# A herd that was not whole yet when its time was over proves nothing.
for limit in 2s 8s 24s; do
    : >\$place/herd
    $hf run --ttl 20s --grace 200ms --max-runtime \$limit job -- $herd 6 \$place/herd 2>\$place/err
    code=\$?
    [ "\$(wc -l <\$place/herd)" = 7 ] && break
done
echo "max \$code"
[ "\$(wc -l <\$place/herd)" = 7 ] && echo whole
bash $dir/survivors
: >\$place/herd
$hf run --ttl 20s --grace 200ms job -- $herd 6 \$place/herd 2>/dev/null &
for i in \$(seq 1500); do
    [ "\$(wc -l <\$place/herd)" = 7 ] && break
    sleep 0.02
done
kill -KILL \$!
$hf run -w 15s job -- bash $dir/survivors
echo "next \$?"
rm \$place/go-on
wait
END

worlds=0
both() { # DESCRIPTION SETUP UNSHARE_OPTION... : SETUP runs in the new namespaces, in the background
    local -x place=$dir/world$((worlds += 1))
    local setup=$2
    mkdir "$place"
    echo "$1" >"$place/what"
    shift 2
    : >"$place/herd"
    : >"$place/go-on"
    # A store of its own, because the embedded one asks /proc for the time namespace, too.
    HOLDFAST_STORE=file:$place/store timeout -s KILL 120 unshare --mount "$@" bash -c "$setup
        bash $dir/both" >"$place/out" 2>/dev/null </dev/null &
}

both_ended() { # of all that were begun
    local place what
    wait
    for place in "$dir"/world*; do
        what=$(cat "$place/what")
        is "$(tr '\n' ' ' <"$place/out")" 'max 124 whole next 0 ' "$what: the whole tree is ended, twice"
        [ ! -e "$place/hit" ]
        ok $? "$what: a stranger is left alone"
        rm -r "$place"
    done
}

# A program built with a sanitizer finds its own options in /proc, and ends with 1 without them.
no_proc_here() {
    ! unshare --mount --pid --fork sh -c "mount -t tmpfs none /proc && $hf version" >/dev/null 2>&1 &&
        diag 'left out: this build does not run without /proc'
}

no_cgroup='mount -t tmpfs none /sys/fs/cgroup &&'
for cgroup in 'with cgroups' 'without cgroups'; do
    hide=
    [ "$cgroup" = 'with cgroups' ] || hide=$no_cgroup
    both "$cgroup, our own /proc" "$hide true" --pid --fork --mount-proc
    both "$cgroup, the /proc of another PID namespace" "$hide true" --pid --fork
    # The embedded store asks /proc for the boot.
    no_proc_here || both "$cgroup, no /proc" "$hide boot=\$(cat /proc/sys/kernel/random/boot_id)
        mount -t tmpfs none /proc && mkdir -p /proc/sys/kernel/random
        echo \$boot >/proc/sys/kernel/random/boot_id" --pid --fork
    both "$cgroup, /proc with hidepid" "$hide mount -t proc -o hidepid=2 proc /proc" --pid --fork
done
both_ended
export place=$dir

# A watchdog that is frozen, where only it can reach the tree.
: >"$dir/herd"
cat >"$dir/frozen" <<END
mount -t tmpfs none /sys/fs/cgroup
$hf run --ttl 4s --grace 200ms --max-runtime 1s job -- sh -c 'echo \$PPID >$dir/watchdog
    exec $herd 3 $dir/herd' 2>/dev/null &
for i in \$(seq 500); do
    [ "\$(wc -l <$dir/herd)" = 4 ] && break
    sleep 0.02
done
$(dirname "$herd")/freeze.pl \$(cat $dir/watchdog) 20 >$dir/freezer &
freezer=\$!
wait %1
echo "rc \$?"
bash $dir/survivors
kill \$freezer
END
run timeout -s KILL 60 unshare --mount --pid --fork bash "$dir/frozen"
if grep -q '^frozen' "$dir/freezer"; then
    is "$out" 'rc 124' 'foreign /proc, watchdog frozen: the supervisor ends the tree'
else
    skip 1 "cannot trace a process here: $(cat "$dir/freezer")"
fi

# Cgroups, where we may make one.
inside=$("$hf" run job -- sh -c 'grep ^0:: /proc/self/cgroup')
case $inside in
*/holdfast.*)
    # Ours are below one of the test's own: others make some at the same time.
    mount=$(findmnt -n -t cgroup2 -o TARGET | head -1)
    home=$mount$(sed -n 's/^0:://p' /proc/self/cgroup)
    mine=$home/test.$$
    mkdir "$mine" && echo $$ >"$mine/cgroup.procs"
    cgroups() { find "$mine" -mindepth 1 -type d; }
    "$hf" run job -- true
    is "$(cgroups)" '' 'the cgroup is gone afterwards'
    # The supervisor and its watchdog are outside.
    run "$hf" run job -- sh -c 'grep -h ^0:: /proc/$PPID/cgroup'
    unlike "$out" holdfast. 'the watchdog is not in it'

    # Whoever leaves the cgroup is still found, as before.
    : >"$dir/herd"
    run "$hf" run --ttl 20s --grace 200ms --max-runtime 1s job -- sh -c "
        echo \$\$ >$mount/cgroup.procs && exec $herd 3 $dir/herd"
    is "$rc" 124 'a command that left the cgroup is ended'
    is "$(wc -l <"$dir/herd")/$(bash "$dir/survivors")" 4/ 'with all that it started'
    is "$(cgroups)" '' 'and the cgroup is removed'

    # A nested run, killed with the tree, leaves no cgroup of its own behind.
    : >"$dir/herd"
    run "$hf" run --ttl 20s --grace 200ms --max-runtime 1s job -- \
        "$hf" run inner -- "$herd" 3 "$dir/herd"
    is "$rc" 124 'a nested run is ended'
    is "$(bash "$dir/survivors")" '' 'with all that it started'
    is "$(cgroups)" '' 'and its cgroup is gone, too'

    # What is left behind with --leftover release goes where we are.
    run "$hf" run --leftover release job -- sh -c "setsid sleep 60 & echo \$! >$dir/left"
    is "$(grep -h ^0:: "/proc/$(cat "$dir/left")/cgroup")" "$(grep ^0:: /proc/self/cgroup)" \
        'who is released is put back where we are'
    kill "$(cat "$dir/left")"
    is "$(cgroups)" '' 'and the cgroup is gone'

    # Somebody who went into another PID namespace is adopted there when his parent ends.
    unshare --pid --fork --mount-proc sleep 60 &
    started="$started $!"
    has_child() { other=$(cut -d ' ' -f 1 "/proc/$1/task/$1/children") && [ -n "$other" ]; }
    within 10 has_child $!
    started="$started $other"
    run "$hf" run --leftover term --grace 200ms job -- nsenter -t "$other" -p \
        sh -c "setsid sleep 61 </dev/null >/dev/null 2>&1 & exit 3"
    is "$rc" 3 'a process in another PID namespace: ended as a leftover'
    is "$(pgrep -f 'sleep 61')" '' 'and gone'
    is "$(cgroups)" '' 'and the cgroup as well'
    kill -KILL "$other"
    echo $$ >"$home/cgroup.procs"
    { wait; } 2>/dev/null
    rmdir "$mine"
    ;;
*) skip 13 "no cgroup of our own here: $inside" ;;
esac

done_testing
