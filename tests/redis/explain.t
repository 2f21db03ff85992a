#!/bin/bash
# holdfast explain on Redis: what other clients left there, above all keys without a ttl.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/explain_queue.sh"

redis_start a
"$hf" --store "$(url a)" explain job --json >"$dir/out"
is "$(jq -r '.next.what' "$dir/out")" quarantine 'a server in quarantine'
fits_schema "$dir/out"
ok $? 'as its schema says'
calm a
export HOLDFAST_STORE
HOLDFAST_STORE=$(url a)
story() { "$hf" explain "$1" | golden; }

"$hf" acquire -n --ttl 1m --label one job >/dev/null
seen job '.holder | .ttl_ms == 60000 and .renewed != null and .label == "one" and .token_time != null'
ok $? 'ttl, last renewal and the time of the token'
explain_queue "$(url a)" '.holder.token_time != null and .holder.renewed != null'
is "$(rcli a keys 'holdfast:{queue}:*')" 'holdfast:{queue}:t' 'and nothing is left of a queue that is empty'

# The last break, when its hold is over.
"$hf" break job --token "$("$hf" status job --json | jq .token)" --reason 'too long' --now >"$dir/broke"
seen job '.held == false and .broken == null and .last_break.reason == "too long"'
ok $? 'a break that is over'
fits_schema "$dir/out"
ok $? 'as its schema says'

rcli a set stuck whoever >/dev/null
is "$(story stuck)" 'stuck in URL: held
  held by    an unknown holder, a client that is not holdfast
  since      this store does not tell
  token      none
  renewed    this store does not tell
  time left  for ever: its key has no ttl
  seems      unknown: nothing shows whether the holder is alive
  broken     no
  waiting    0
  records    none
  next       Nothing, ever: a key without a ttl does not end by itself. Whoever made it has to delete it, or holdfast break --now.' \
    'a key without a ttl never ends'
"$hf" explain stuck --json >"$dir/out"
fits_schema "$dir/out"
ok $? 'as its schema says'
is "$(jq -c .next "$dir/out")" '{"what":"never","in_ms":null}' 'in JSON too'
timeout 10 "$hf" run -w 2s stuck -- true 2>"$dir/err"
like "$(cat "$dir/err")" '*whose key has no ttl: this never ends by itself*' 'and the line of a run that waits says so'

rcli a set passing whoever px 600000 >/dev/null
seen passing '.holder.foreign and .holder.endless == false and .next.what == "end"'
ok $? 'a foreign key with a ttl ends'
rcli a lpush odd 1 >/dev/null
seen odd '.holder.foreign and .holder.endless'
ok $? 'so does not a key of another type'
# What is no answer says nothing: not that the lock is free, either.
python3 -c 'import socket, threading
def answer(link):
    while link.recv(4096):
        link.sendall(b"+OK\r\n" * 3)
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()' >"$dir/yes.port" 2>"$dir/yes.err" &
client_pid[yes]=$!
disown $!
eventually 10 test -s "$dir/yes.port"
answer=$("$hf" --store "redis://127.0.0.1:$(cat "$dir/yes.port")" explain job 2>&1)
is "$?" 69 'a server that says OK to everything'
like "$answer" '*makes no sense*' 'has not said that the lock is free'
gone yes

# Down, and hanging.
kill -STOP "$(pid a)"
timeout 30 "$hf" explain job >/dev/null 2>"$dir/err"
is $? 69 'a server that hangs'
kill -CONT "$(pid a)"
done_testing
