#!/bin/bash
# Ways to a server that lead nowhere: connections whose state was lost in between, and an address of a
# name that nobody answers at.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

cc -shared -fPIC -O1 -D_GNU_SOURCE -o "$dir/two.so" "$root/tests/tools/two_addresses.c" ||
    skip_all 'there is no compiler'
pg_start a
proxy_start p a

# all connections of a client with eight threads fall silent; new ones are answered
"$build/tests/postgres/tool_many" "$(url p)" 200 10000 16 >"$dir/many.out" 2>"$dir/many.err" &
client_pid[many]=$!
eventually 30 grep -q ready "$dir/many.out"
connections() { sql a "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast'"; }
above "$(connections)" 6 'a client with many connections'
proxy p strand
wait "${client_pid[many]}"
unset "client_pid[many]"
sed 's/^/# /' "$dir/many.err"
like "$(tail -n 1 "$dir/many.out")" 'held 200 lost 0 *' 'no lease is lost with the connections'

# what the system is told about idle connections
probed_in() { # URL-PARAMETERS : when the next probe is due, in seconds; nothing: never
    client "s$1" "$(url a "$1")"
    awk -v to="$(printf '0100007F:%04X' "$(port a)")" '$3 == to && $4 == "01" && $6 ~ /^02/ {
        print substr($6, 4) }' /proc/net/tcp | while read -r ticks; do
        echo $((0x$ticks / $(getconf CLK_TCK)))
    done | head -n 1
    gone "s$1"
}
within=$(probed_in '')
[ "${within:-3600}" -le 10 ]
ok $? "idle connections are probed within seconds (${within:-never})"
is "$(probed_in '?keepalives=0')" '' 'unless the URL says otherwise'

# the first address of a name is a black hole
python3 -c 'import socket, sys, time
listener = socket.socket()
listener.bind(("127.0.0.2", int(sys.argv[1])))
listener.listen(64)
print("ready", flush=True)
time.sleep(600)' "$(port a)" >"$dir/hole.out" &
client_pid[hole]=$!
eventually 10 grep -q ready "$dir/hole.out"
preload=$dir/two.so
asan=$(ldd "$build/holdfast" | sed -n 's/.*libasan[^ ]* => \([^ ]*\).*/\1/p')
start=$SECONDS
LD_PRELOAD=${asan:+$asan:}$preload "$hf" --store "postgres://postgres@server.two:$(port a)/postgres" \
    run -n two -- true 2>"$dir/two.err"
is $? 0 'a name whose first address never answers'
sed 's/^/# /' "$dir/two.err"
[ $((SECONDS - start)) -lt 20 ]
ok $? 'is passed over'
"$hf" --store "postgres://postgres@nowhere.invalid:$(port a)/postgres" run -n two -- true 2>"$dir/two.err"
is $? 69 'a name without an address'
like "$(cat "$dir/two.err")" '*nowhere.invalid has no address*' 'is named'
LD_PRELOAD=${asan:+$asan:}$preload "$hf" \
    --store "postgres://postgres@nowhere.invalid,server.two:$(port a)/postgres" run -n two -- true
is $? 0 'and costs nothing where there is another'
done_testing
