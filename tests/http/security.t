#!/bin/bash
# security.t - credentials and TLS between the http store and its server.
# run: once
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/serve/http.sh"

read -r port tls_port mutual_port <<<"$(free_ports 3 | tr '\n' ' ')"
serve_credential writer look lock:app/
serve_credential reader look
serve_start --store "file:$dir/store" --listen "tcp:127.0.0.1:$port" --tokens "$dir/tokens"
url=http://127.0.0.1:$port
as() { export HOLDFAST_HTTP_TOKEN_FILE=$1; } # FILE
client c

# credentials
ask c open "$url"
like "$answer" 'HF_DENIED*credential*' 'no credential: denied, and what to do'
ask c open "http+unix://$sock"
is "$answer" ok 'none is needed through the socket'
ask c close
head -c 32 /dev/zero | tr '\0' z >"$dir/wrong.secret"
as "$dir/wrong.secret"
client w
ask w open "$url"
like "$answer" 'HF_DENIED*not known*' 'a wrong secret: denied'
[[ $answer != *zzzz* ]]
ok $? 'the text does not have it'
as "$dir/writer.secret"
client a
ask a open "$url"
is "$answer" ok 'the right one'
ask a acquire 1 app/x 20000 0
like "$answer" 'ok *' 'takes what it may'
ask a acquire 2 other 5000 0
like "$answer" 'HF_DENIED*right*' 'and no other lock'
as "$dir/reader.secret"
client r
ask r open "$url"
ask r acquire 1 app/x 5000 0
like "$answer" 'HF_DENIED*right*' 'one that may only look takes none'
ask r status app/x
like "$answer" 'ok \[app/x held=1*' 'and sees who holds it'
like "$answer" '*writer/*' 'with the name of the credential before the label'
ask a release 1
is "$answer" ok 'release'

# where the secret comes from
mkdir "$dir/credentials"
cp "$dir/writer.secret" "$dir/credentials/holdfast"
as holdfast
CREDENTIALS_DIRECTORY=$dir/credentials "$hf" --store "$url" run -n app/y -- true
is "$?" 0 'a relative name is a credential of the unit'
as "$dir/nowhere"
"$hf" --store "$url" list 2>"$dir/err"
is "$?" 64 'a file that is not there'
like "$(cat "$dir/err")" '*nowhere*' 'is named'
printf 'two words\n' >"$dir/odd"
as "$dir/odd"
"$hf" --store "$url" list 2>"$dir/err"
is "$?" 64 'a character that would be another header'
[[ $(cat "$dir/err") != *words* ]]
ok $? 'and the secret is not shown'
as "$dir/writer.secret"
"$hf" --store "http://writer:secret@127.0.0.1:$port" list 2>"$dir/err"
is "$?" 64 'a user in the URL is refused'
like "$(cat "$dir/err")" '*HOLDFAST_HTTP_TOKEN_FILE*' 'with what to do instead'
[[ $(cat "$dir/err") != *:secret@* ]]
ok $? 'and the password is not shown'

# TLS with an authority of our own
cert() { # NAME SUBJECT-ALT-NAME [AUTHORITY]
    openssl req -newkey rsa:2048 -nodes -keyout "$dir/$1.key" -out "$dir/$1.csr" -subj "/CN=$1" &&
        openssl x509 -req -in "$dir/$1.csr" -CA "$dir/${3-ca}.crt" -CAkey "$dir/${3-ca}.key" \
            -CAcreateserial -days 2 -out "$dir/$1.crt" -extfile <(echo "subjectAltName=$2")
} >/dev/null 2>&1
for authority in ca other; do
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$dir/$authority.key" -out "$dir/$authority.crt" \
        -days 2 -subj "/CN=$authority" >/dev/null 2>&1
done
cert server DNS:localhost
cert user DNS:user
cert stranger DNS:stranger other
gate() { # NAME PORT CERTIFICATE [AUTHORITY]
    python3 "$root/tests/http/tls.py" "$2" "$sock" "$dir/$3.crt" "$dir/$3.key" ${4+"$4"} 2>>"$dir/tls.err" &
    server_pid[$1]=$!
    eventually 20 bash -c ": </dev/tcp/127.0.0.1/$2" 2>/dev/null
}
gate tls "$tls_port" server
gate mutual "$mutual_port" server "$dir/ca.crt"
tls=https://localhost:$tls_port
mutual=https://localhost:$mutual_port
unset HOLDFAST_HTTP_TOKEN_FILE
client s
ask s open "$tls?ca=$dir/ca.crt"
is "$answer" ok 'TLS with an authority of our own'
ask s acquire 1 x 20000 0
like "$answer" 'ok *' 'acquire'
client s2 "$tls?ca=$dir/ca.crt"
tell s2 acquire 1 x 5000 20000
eventually 10 eval 'ask s status x; [[ $answer == *waiters=1* ]]'
ask s release 1
hear s2
like "$answer" 'ok *' 'a hand-over through TLS'
ask s2 release 1
ask s close
ask s open "$tls"
like "$answer" 'HF_DENIED*certificate cannot be trusted*' 'an authority that nobody knows: denied'
ask s open "$tls?ca=$dir/other.crt"
like "$answer" 'HF_DENIED*certificate cannot be trusted*' 'another authority: denied'
ask s open "https://127.0.0.1:$tls_port?ca=$dir/ca.crt"
like "$answer" 'HF_DENIED*' 'a certificate for another name: denied'
ask s open "$tls?verify=off"
is "$answer" ok 'unless verification is switched off'
ask s close
ask s open "$mutual?ca=$dir/ca.crt"
like "$answer" 'HF_DENIED*cert=*' 'a server that wants our certificate and gets none'
ask s open "$mutual?ca=$dir/ca.crt&cert=$dir/stranger.crt&key=$dir/stranger.key"
like "$answer" 'HF_DENIED*cert=*' 'or one it does not know'
ask s open "$mutual?ca=$dir/ca.crt&cert=$dir/user.crt&key=$dir/user.key"
is "$answer" ok 'with ours'
ask s close
ask s open "$tls?ca=$dir/nowhere"
like "$answer" 'HF_INVALID*nowhere*' 'a file that is not there'
ask s open "http://127.0.0.1:$tls_port"
like "$answer" 'HF_UNREACHABLE*' 'plain talk to a TLS port'
ask s open "https://127.0.0.1:$port?ca=$dir/ca.crt"
like "$answer" 'HF_UNREACHABLE*' 'TLS to a plain port'
done_testing
