#!/bin/bash
# Odd trees of processes: each is ended as a whole, before the next holder begins.
# run: first
# run: slow
set -u
. "$(dirname "$0")/lib.sh"
tool=${BUILD:-build}/tests/tools/tool_tree
case $tool in /*) ;; *) tool=$PWD/$tool ;; esac

# Which processes of the tree are alive, the moment the lock is ours.
cat >"$dir/survivors" <<END
for pid in \$(cat $dir/tree); do
    grep -q '^State:.[^ZX]' /proc/\$pid/status 2>/dev/null && echo \$pid
done
true
END

# KIND, how many processes it notes
trees='threads 13
close-all 4
undumpable 4
traced 4
borrowed 7
subreaper 4
fleeing 1'

odd_trees() { # DESCRIPTION COMMAND... : how holdfast is started
    local what=$1 kind count limit
    shift
    while read -r kind count; do
        # A tree that was not whole yet when its time was over proves nothing.
        for limit in 1s 4s 12s 48s; do
            : >"$dir/tree"
            run timeout -s KILL 90 "$@" "$hf" run --ttl 8s --grace 200ms --max-runtime $limit job -- \
                "$tool" "$kind" "$dir/tree"
            [ "$(wc -l <"$dir/tree")" -lt "$count" ] || break
        done
        is "$rc/$(wc -l <"$dir/tree")/$(bash "$dir/survivors")" "124/$count/" "$what: $kind"
    done <<<"$trees"
}

odd_trees 'as we are'
is "$(pgrep -f "^$tool")" '' 'as we are: nobody is left, not even of those on the run'
if unshare --mount --pid --fork true 2>/dev/null; then
    odd_trees 'without cgroups' unshare --mount sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"' sh
    is "$(pgrep -f "^$tool")" '' 'without cgroups: nobody is left, not even of those on the run'
else
    skip 8 'cannot make namespaces here'
fi

# Both watchers struck down by the tree itself: only a cgroup helps.
if "$hf" run job -- grep -q '^0::.*/holdfast\.' /proc/self/cgroup; then
    for kind in kill-both stop-both; do
        : >"$dir/tree"
        start "$hf" run --ttl 6s --grace 200ms job -- "$tool" "$kind" "$dir/tree" 2>/dev/null
        within 10 lines "$dir/tree" 4
        run "$hf" run -w 60s job -- bash "$dir/survivors"
        is "$rc/$(wc -l <"$dir/tree")/$out" 0/4/ "$kind: nobody is alive when the next one begins"
        # Also after kill-both: it stops them first, and may be ended itself before it has killed both.
        kill -CONT "$pid" 2>/dev/null
        ended "$pid"
    done
    is "$rc" 123 'stop-both: the lock was lost, says the supervisor when it goes on'
    sleep 0.2
    is "$(find /sys/fs/cgroup -maxdepth 3 -name "holdfast.$pid.*")" '' 'and the cgroup is gone'
else
    skip 4 'no cgroup of our own here'
fi

done_testing
