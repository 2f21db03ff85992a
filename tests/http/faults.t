#!/bin/bash
# faults.t - answers that are not the server's, or no answers: unknown is not no, nothing is sent twice, and what may have
# been granted is released, twice.
set -u
. "$(dirname "$0")/../support/stage.sh"

python3 "$root/tests/http/fake.py" "$dir/sock" 2>"$dir/fake.err" &
server_pid[fake]=$!
# shellcheck disable=SC2317 # stage.sh calls it
server_stop() { kill -KILL "${server_pid[$1]}" 2>/dev/null; }
eventually 20 test -S "$dir/sock"
client c "http+unix://$dir/sock"
seen() { curl -sS --unix-socket "$dir/sock" "http://localhost/count/$1"; }

for name in html gateway cut half; do
    ask c acquire 1 "$name" 5000 0
    like "$answer" 'HF_UNKNOWN*' "$name: it may have been granted"
    read -r acquires releases first second <<<"$(seen "$name")"
    is "$acquires $releases" '1 2' "$name: asked for once, released twice"
    above "$((second - first))" 900 "$name: a second apart"
done
for name in broken page; do
    ask c acquire 1 "$name" 5000 100
    like "$answer" 'HF_UNKNOWN*' "$name: a stream without a verdict, likewise"
    is "$(seen "$name" | cut -d ' ' -f 1,2)" '1 2' "$name: asked for once, released twice"
done

ask c acquire 1 used 5000 0
like "$answer" 'HF_UNKNOWN*' 'a request that somebody repeated: what became of the other copy is not known'
is "$(seen used)" '1 0' 'and that one is left alone'
ask c acquire 1 busy 5000 0
like "$answer" 'HF_BUSY*is held by somebody' 'no is no, in the words of the server'
is "$(seen busy)" '1 0' 'and nothing is released'

ask c acquire 2 dead 5000 0
like "$answer" 'HF_UNKNOWN*' 'a kept connection that turns out to be dead'
is "$(seen dead | cut -d ' ' -f 1)" 1 'libcurl does not send the request again'

ask c acquire 3 far 5000 0
like "$answer" 'ok 7 *' 'a server that says it was asked an hour after us'
ask c left 3
above 4949 "${answer#ok }" 'does not make the lease longer than its ttl'
ask c acquire 4 kept 5000 20000
like "$answer" 'ok 7 *' 'granted after 3s of waiting'
ask c left 4
above "${answer#ok }" 4000 'it counts from when the server asked its store'
above 4950 "${answer#ok }" 'and not from the answer'

"$hf" --store "http+unix://$dir/sock" status --json >"$dir/status" 2>&1
is "$(jq -r '.features | sort | join(" ")' "$dir/status")" 'detached fair renew-ttl' \
    'the features are those of the server that go by HTTP'
done_testing
