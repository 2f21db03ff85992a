#!/bin/bash
# security.t - the nodes of a redlock behind TLS, passwords and ACL users.
set -u
. "$(dirname "$0")/lib.sh"

# A certificate of an authority of our own.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$dir/ca.key" -out "$dir/ca.crt" -days 2 \
    -subj /CN=authority >/dev/null 2>&1
openssl req -newkey rsa:2048 -nodes -keyout "$dir/node.key" -out "$dir/node.csr" -subj /CN=node \
    >/dev/null 2>&1
openssl x509 -req -in "$dir/node.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial -days 2 \
    -out "$dir/node.crt" -extfile <(echo 'subjectAltName=DNS:localhost') >/dev/null 2>&1

secret='pa:s/s@w0rd'
encoded='pa%3As%2Fs%40w0rd'
# The ACL user may do what the manual of the Redis store says, and no more.
mapfile -t rules < <(sed -n 's/^    ACL SETUSER locker //p' "$root/docs/redis.md")
[ "${#rules[@]}" -gt 0 ]
ok $? 'the manual has the ACL rules'
plain=''
tls=''
for n in n1 n2 n3; do
    tls_port=$(free_port)
    server_cli="--no-auth-warning -a $secret"
    redis_start "$n" --requirepass "$secret" --tls-port "$tls_port" --tls-auth-clients no \
        --tls-cert-file "$dir/node.crt" --tls-key-file "$dir/node.key" --tls-ca-cert-file "$dir/ca.crt"
    admin() { rcli "$n" --no-auth-warning -a "$secret" "$@"; }
    id=$(admin info replication | tr -d '\r' | sed -n 's/^master_replid://p')
    for db in 0 3; do admin -n "$db" set holdfast:inc "$id 1 1 60000" >/dev/null; done
    # shellcheck disable=SC2086 # rules are words
    admin acl setuser locker on '>s3' ${rules[0]//app:/acl:} >/dev/null
    plain="$plain,127.0.0.1:$(port "$n")"
    tls="$tls,localhost:$tls_port"
done
plain=${plain#,} tls=${tls#,}

client c
ask c open "redlock://$plain"
like "$answer" 'HF_DENIED*password*' 'no password: denied, and where it can be given'
ask c open "redlock://:wrong-one@$plain"
like "$answer" 'HF_DENIED*' 'a wrong password: denied'
[[ $answer != *wrong-one* ]]
ok $? 'the text does not have it'
ask c open "redlock://:$encoded@$plain/3?node_timeout=5s"
is "$answer" ok 'the right one, in the URL, with a database'
ask c acquire 1 x 5000 0
like "$answer" 'ok *' 'acquire'
is "$(rcli n1 --no-auth-warning -a "$secret" -n 3 exists x)" 1 'the lock is in that database'
ask c release 1
is "$answer" ok 'release'
ask c close
echo "$secret" >"$dir/password"
ask c open "redlock://$plain?password_file=$dir/password"
is "$answer" ok 'the password in a file'
ask c close
export HOLDFAST_REDIS_PASSWORD=$secret
client e "redlock://$plain"
is "$answer" ok 'in the environment'
unset HOLDFAST_REDIS_PASSWORD

client l "redlock://locker:s3@$plain?prefix=acl:&node_timeout=5s"
is "$answer" ok "an ACL user with the manual's rules opens the store"
ask l acquire 1 x 5000 0
like "$answer" 'ok *' 'acquires'
ask l renew 1 5000
is "$answer" ok 'renews'
ask l list -
like "$answer" 'ok \[x held=1*' 'lists'
ask l release 1
is "$answer" ok 'releases'
for n in n1 n2 n3; do rcli "$n" --no-auth-warning -a "$secret" acl setuser locker -scan >/dev/null; done
ask l list -
like "$answer" '*HF_DENIED*+scan*' 'a listing that is refused says so'
rcli n1 --no-auth-warning -a "$secret" acl setuser locker +scan >/dev/null
rcli n2 --no-auth-warning -a "$secret" acl setuser locker +scan >/dev/null
ask l acquire 1 x 5000 0
ask l list -
like "$answer" 'ok \[x held=1*' 'at one of three it does not matter'
ask l release 1
for n in n1 n2 n3; do rcli "$n" --no-auth-warning -a "$secret" acl setuser locker -type >/dev/null; done
ask l list -
like "$answer" '*HF_DENIED*+type*' 'nor is the script that looks at one lock'
ask l status x
like "$answer" '*HF_DENIED*+type*' 'nor a look at one'

auth="tls=on&password_file=$dir/password"
ask c open "redlock://$tls?$auth&ca=$dir/ca.crt&node_timeout=5s"
is "$answer" ok 'TLS with an authority of our own'
ask c acquire 1 x 5000 0
like "$answer" 'ok *' 'acquire through TLS'
client d "redlock://$tls?$auth&ca=$dir/ca.crt&node_timeout=5s"
ask d acquire 1 x 5000 0
like "$answer" 'HF_BUSY*' 'another one is refused'
ask c renew 1 5000
is "$answer" ok 'renew'
ask d status x
like "$answer" '*held=1*' 'look'
ask c release 1
is "$answer" ok 'release'
ask d pairs 100 many
like "$answer" 'ok *' 'many requests through TLS'
redis_stop n3 KILL
ask d acquire 1 x 5000 5000
like "$answer" 'ok *' 'with one of three gone it is granted through TLS'
ask d release 1
ask c close
ask c open "redlock://$tls?$auth"
like "$answer" 'HF_DENIED*' 'an authority that nobody knows: denied'
ask c open "redlock://${tls//localhost/127.0.0.1}?$auth&ca=$dir/ca.crt"
like "$answer" 'HF_DENIED*mismatch*' 'the certificate is for another name: denied'
ask c open "redlock://$plain?$auth&verify=off"
like "$answer" 'HF_UNREACHABLE*' 'TLS to a plain port'
done_testing
