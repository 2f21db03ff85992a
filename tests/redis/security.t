#!/bin/bash
# Passwords, ACL users and TLS.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

secret='pa:s/s@w0rd'
encoded='pa%3As%2Fs%40w0rd'
server_cli="--no-auth-warning -a $secret"
redis_start a --requirepass "$secret" --unixsocket "$dir/sock" --unixsocketperm 700
admin() { rcli a --no-auth-warning -a "$secret" "$@"; }
id=$(admin info replication | tr -d '\r' | sed -n 's/^master_replid://p')
admin set holdfast:inc "$id 1 1 60000" >/dev/null
p=$(port a)

client c
ask c open "redis://127.0.0.1:$p"
like "$answer" 'HF_DENIED*password*' 'no password: denied, and where it can be given'
ask c open "redis://:wrong-one@127.0.0.1:$p"
like "$answer" 'HF_DENIED*' 'a wrong password: denied'
[[ $answer != *wrong-one* ]]
ok $? 'the text does not have it'
ask c open "redis://:$encoded@127.0.0.1:$p"
is "$answer" ok 'the right one, in the URL'
ask c acquire 1 x 5000 0
like "$answer" 'ok *' 'acquire'
ask c release 1
export HOLDFAST_REDIS_PASSWORD=$secret
client e "redis://127.0.0.1:$p"
is "$answer" ok 'in the environment'
unset HOLDFAST_REDIS_PASSWORD
echo "$secret" >"$dir/password"
client f "redis://127.0.0.1:$p?password_file=$dir/password"
is "$answer" ok 'in a file'
ask f close
ask f open "redis://127.0.0.1:$p?password_file=$dir/nowhere"
like "$answer" 'HF_INVALID*nowhere*' 'a file that is not there'
: >"$dir/empty"
ask f open "redis://127.0.0.1:$p?password_file=$dir/empty"
like "$answer" 'HF_INVALID*empty*' 'an empty one'
client u "redis+unix://:$encoded@$dir/sock?db=2"
is "$answer" ok 'over a Unix socket, with a database'
ask u close
ask u open "redis+unix://$dir/none"
like "$answer" 'HF_UNREACHABLE*' 'a socket that is not there'

# an ACL user with exactly what the manual says
mapfile -t rules < <(sed -n 's/^    ACL SETUSER locker //p' "$root/docs/redis.md")
[ "${#rules[@]}" -gt 0 ]
ok $? 'the manual has the ACL rules'
# shellcheck disable=SC2086 # rules are words
admin acl setuser locker on '>s3' ${rules[0]//app:/acl:} >/dev/null
client l "redis://locker:s3@127.0.0.1:$p?prefix=acl:"
is "$answer" ok "an ACL user with the manual's rules opens the store"
ask l acquire 1 x 5000 0
like "$answer" 'ok *' 'acquires'
client l2 "redis://locker:s3@127.0.0.1:$p?prefix=acl:"
tell l2 acquire 1 x 5000 20000
eventually 5 eval '[ "$(admin zcard "holdfast:{acl:x}:q")" = 1 ]'
ask l renew 1 5000
is "$answer" ok 'renews'
ask l release 1
is "$answer" ok 'releases'
hear l2
like "$answer" 'ok *' 'waits and gets it'
ask l list -
like "$answer" 'ok \[x held=1*' 'lists'
ask l acquire 2 y 5000 0
client l3 "redis://locker:s3@127.0.0.1:$p?prefix=acl:"
tell l3 any 1 20000 x y
eventually 5 eval '[ "$(admin zcard "holdfast:{acl:y}:q")" = 1 ]'
ask l status y
like "$answer" '*waiters=1*' 'sees who waits for one of several'
ask l release 2
hear l3
like "$answer" 'ok * y' 'who has the one that is free'
ask l3 release 1
gone l3
ask l break x "$(ask l2 renew 1 5000; ask l status x; sed -n 's/.*token=\([0-9]*\).*/\1/p' <<<"$answer")"
like "$answer" 'ok left=*' 'breaks, for which there is no right of its own'
ask l2 renew 1 5000
like "$answer" 'HF_LOST*was broken by breaker*' 'the holder hears of it'
ask l2 release 1
read -r -a rules < <(sed -n 's/^For records also `\([^`]*\)`.*/\1/p' "$root/docs/redis.md")
above "${#rules[@]}" 0 'the manual has the rules for records'
ask l acquire 1 x 5000 0
ask l put 1 k value
like "$answer" 'HF_DENIED*+hget*' 'without them a put is refused'
admin acl setuser locker "${rules[@]}" >/dev/null
ask l put 1 k value 1
like "$answer" 'ok *appendonly*' 'with them it writes'
ask l release 1
ask l acquire 1 x 5000 0
ask l put 1 j value
ask l get x j
like "$answer" 'ok \[j=value *' 'reads'
ask l records x -
like "$answer" 'ok \[j=value *' 'and lists a record'
ask l release 1
client o "redis://locker:s3@127.0.0.1:$p?prefix=other:"
ask o acquire 1 x 5000 0
like "$answer" 'HF_DENIED*ACL*' 'a key outside its pattern: denied'
admin acl setuser locker -scan >/dev/null
ask l list -
like "$answer" '*HF_DENIED*+scan*' 'a listing that is refused says so'
admin acl setuser locker +scan -type >/dev/null
ask l list -
like "$answer" '*HF_DENIED*+type*' 'also for what its script needs'
admin acl setuser locker +type -evalsha >/dev/null
ask l acquire 1 x 5000 0
like "$answer" 'HF_DENIED*+evalsha*' 'NOPERM names the missing rule'
admin acl setuser locker +evalsha -set >/dev/null
ask l acquire 1 x 5000 0
like "$answer" 'HF_DENIED*+set*' 'also for a command that a script needs'
admin acl setuser locker +set -blpop >/dev/null
ask l acquire 1 y 5000 0
ask l2 acquire 1 y 5000 5000
like "$answer" 'HF_DENIED*+blpop*' 'and for waiting'

# a user without a password is that user all the same
admin acl setuser guest on nopass '~guest:*' '~holdfast:*' +@all >/dev/null
client g "redis://guest@127.0.0.1:$p?prefix=guest:"
is "$answer" ok 'a user that needs no password opens the store'
ask g acquire 1 x 5000 0
like "$answer" 'ok *' 'and acquires'
admin client list | grep -q 'user=guest'
ok $? 'as that user'

# a server that quotes what it does not understand
server_cli=
redis_start odd --rename-command AUTH '' --rename-command HELLO ''
ask c open "redis://:$encoded@127.0.0.1:$(port odd)"
like "$answer" 'HF_*unknown command*' 'a server that knows no AUTH'
[[ $answer != *"$secret"* ]]
ok $? 'is not quoted with the password'
ask c open "redis://someone:$encoded@127.0.0.1:$(port odd)"
[[ $answer != *"$secret"* ]]
ok $? 'nor if there is a user'
ask c open "redlock://:$encoded@127.0.0.1:$(port odd),127.0.0.1:1,127.0.0.1:2"
[[ $answer != *"$secret"* ]]
ok $? 'nor by a redlock'
ask c open "redis+sentinel://127.0.0.1:$(port odd)/m?sentinel_password_file=$dir/password"
[[ $answer != *"$secret"* ]]
ok $? 'nor the password of the sentinels'

# TLS with an authority of our own
cert() { # NAME SUBJECT-ALT-NAME
    openssl req -newkey rsa:2048 -nodes -keyout "$dir/$1.key" -out "$dir/$1.csr" -subj "/CN=$1" &&
        openssl x509 -req -in "$dir/$1.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial \
            -days 2 -out "$dir/$1.crt" -extfile <(echo "subjectAltName=$2")
} >/dev/null 2>&1
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$dir/ca.key" -out "$dir/ca.crt" -days 2 \
    -subj /CN=authority >/dev/null 2>&1
cert server DNS:localhost
cert user DNS:user
tls_port=$(free_port)
server_cli=
redis_start t --tls-port "$tls_port" --tls-cert-file "$dir/server.crt" --tls-key-file "$dir/server.key" \
    --tls-ca-cert-file "$dir/ca.crt"
calm t
client s
ask s open "rediss://localhost:$tls_port?ca=$dir/ca.crt&cert=$dir/user.crt&key=$dir/user.key"
is "$answer" ok 'TLS with a certificate of our own'
ask s acquire 1 x 5000 0
like "$answer" 'ok *' 'acquire'
client s2 "rediss://localhost:$tls_port?ca=$dir/ca.crt&cert=$dir/user.crt&key=$dir/user.key"
tell s2 acquire 1 x 5000 20000
eventually 5 eval '[ "$(rcli t zcard "holdfast:{x}:q")" = 1 ]'
ask s release 1
hear s2
like "$answer" 'ok *' 'a hand-over through TLS'
ask s2 release 1
ask s2 pairs 200 many
like "$answer" 'ok *' 'many requests through TLS'
ask s close
ask s open "rediss://127.0.0.1:$tls_port?ca=$dir/ca.crt&cert=$dir/user.crt&key=$dir/user.key"
like "$answer" 'HF_DENIED*mismatch*' 'the certificate is for another name: denied'
ask s open "rediss://localhost:$tls_port?cert=$dir/user.crt&key=$dir/user.key"
like "$answer" 'HF_DENIED*' 'an authority that nobody knows: denied'
ask s open "rediss://127.0.0.1:$tls_port?verify=off&cert=$dir/user.crt&key=$dir/user.key"
is "$answer" ok 'unless verification is switched off'
ask s close
ask s open "rediss://localhost:$tls_port?ca=$dir/ca.crt"
like "$answer" 'HF_UNREACHABLE*' 'a server that wants our certificate and gets none'
ask s open "rediss://localhost:$tls_port?ca=$dir/nowhere"
like "$answer" 'HF_INVALID*nowhere*' 'a file that is not there'
ask s open "redis://127.0.0.1:$tls_port"
like "$answer" 'HF_UNREACHABLE*' 'plain talk to a TLS port'
ask s open "rediss://127.0.0.1:$(port t)?verify=off"
like "$answer" 'HF_UNREACHABLE*TLS*' 'TLS to a plain port'
done_testing
