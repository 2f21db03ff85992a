#!/bin/bash
# Users, passwords, roles and TLS.
set -u
. "$(dirname "$0")/lib.sh"

secret='pa:s/s@w0"rd'
encoded='pa%3As%2Fs%40w0%22rd'
etcd_start a --auth-token-ttl 2
ctl a user add "root:$secret" >/dev/null
ctl a user grant-role root root >/dev/null
ctl a role add locker >/dev/null
ctl a role grant-permission --prefix=true locker readwrite holdfast/ >/dev/null
ctl a user add "job:$secret" >/dev/null
ctl a user grant-role job locker >/dev/null
ctl a role add reader >/dev/null
ctl a role grant-permission --prefix=true reader read holdfast/ >/dev/null
ctl a user add "spy:$secret" >/dev/null
ctl a user grant-role spy reader >/dev/null
host=127.0.0.1:$(port a)

client c "etcd://job:$encoded@$host"
is "$answer" ok 'a user where none is wanted'
ask c close
ctl a auth enable >/dev/null

ask c open "etcd://$host"
like "$answer" 'HF_DENIED*user and a password*' 'no user: denied, and what to do'
ask c open "etcd://job:wrong-one@$host"
like "$answer" 'HF_DENIED*wrong user or password*' 'a wrong password: denied'
[[ $answer != *wrong-one* ]]
ok $? 'the text does not have it'
ask c open "etcd://job@$host"
like "$answer" 'HF_DENIED*no password*' 'no password: denied, and where it can be given'
ask c open "etcd://job:$encoded@$host"
is "$answer" ok 'the right one, in the URL'
ask c acquire 1 x 8000 0 kept
like "$answer" 'ok *' 'acquire'
client d "etcd://job:$encoded@$host"
tell d acquire 1 x 8000 30000
eventually 10 eval 'ask c status x; [[ $answer == *waiters=1* ]]'
ask c release 1
is "$answer" ok 'release'
hear d
like "$answer" 'ok *' 'a hand-over between users with passwords'
ask d renew 1 8000
is "$answer" ok 'renew'
ask c close
[ "$(grep -c . "$dir/client.c.err")" = 0 ]
ok $? 'nothing on stderr'
export HOLDFAST_ETCD_PASSWORD=$secret
client e "etcd://job@$host"
is "$answer" ok 'the password in the environment'
unset HOLDFAST_ETCD_PASSWORD
echo "$secret" >"$dir/password"
client f "etcd://job@$host?password_file=$dir/password"
is "$answer" ok 'in a file'
ask f close
ask f open "etcd://job@$host?password_file=$dir/nowhere"
like "$answer" 'HF_INVALID*nowhere*' 'a file that is not there'
ask f open "etcd://job:$encoded@$host?prefix=other/"
like "$answer" 'HF_DENIED*role*' 'a prefix without permission: denied'
ask f open "etcd://spy:$encoded@$host"
ask f acquire 1 x2 5000 0
like "$answer" 'HF_DENIED*readwrite*' 'a user that may only read'
ask f status x
like "$answer" 'ok \[x held=1*' 'can look'

# the server forgets the auth token while a lease is held and another waits
tell e acquire 1 x 8000 60000
eventually 10 eval 'ask f status x; [[ $answer == *waiters=1* ]]'
ask d renew 1 20000
etcd_stop a KILL
etcd_again a
ask d renew 1 20000
is "$answer" ok 'a restarted server knows no token: a new one is fetched for the renewal'
silent e
ok $? 'the waiter waits on'
ask d release 1
is "$answer" ok 'and is told'
hear e
like "$answer" 'ok *' 'when it is its turn'
ask e release 1

# a token that was not used for too long
authenticate() {
    curl -s "http://$host/v3/auth/authenticate" -d '{"name":"job","password":"pa:s/s@w0\"rd"}' |
        sed 's/.*"token":"\([^"]*\)".*/\1/'
}
with_token() { curl -s -H "Authorization: $1" "http://$host/v3/kv/range" -d '{"key":"aG9sZGZhc3QveA=="}'; }
old=$(authenticate)
like "$(with_token "$old")" '{"header"*' "etcd's own token"
ask d acquire 1 x 20000 0 kept
tell e acquire 1 x 20000 60000
eventually 10 eval 'ask f status x; [[ $answer == *waiters=1* ]]'
eventually 20 eval 'sleep 4; [[ $(with_token "$old") == *"invalid auth token"* ]]'
ok $? 'expires'
ask d release 1
is "$answer" ok 'a release after that: a new one is fetched'
hear e
like "$answer" 'ok *' 'the waiter heard of it'
ask e renew 1 20000
is "$answer" ok 'and renews'
ask e release 1

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
cert server 'DNS:localhost,IP:127.0.0.1'
cert user DNS:user
cert stranger DNS:stranger other
cert elsewhere DNS:elsewhere
scheme=https
ctl_options="--cacert $dir/ca.crt --cert $dir/user.crt --key $dir/user.key"
etcd_start t --cert-file "$dir/server.crt" --key-file "$dir/server.key" --client-cert-auth \
    --trusted-ca-file "$dir/ca.crt"
t=127.0.0.1:$(port t)
mine="cert=$dir/user.crt&key=$dir/user.key"
client s
ask s open "etcd://$t?ca=$dir/ca.crt&$mine"
is "$answer" ok 'TLS with a certificate of our own'
ask s acquire 1 x 5000 0
client s2 "etcd://$t?ca=$dir/ca.crt&$mine"
tell s2 acquire 1 x 5000 20000 kept
eventually 10 eval 'ask s status x; [[ $answer == *waiters=1* ]]'
ask s release 1
hear s2
like "$answer" 'ok *' 'a hand-over through TLS'
ask s2 release 1
ask s2 pairs 20 many
like "$answer" 'ok *' 'many requests through TLS'
ask s close
ask s open "etcd://$t?$mine"
like "$answer" 'HF_DENIED*certificate cannot be trusted*' 'an authority that nobody knows: denied'
ask s open "etcd://$t?ca=$dir/other.crt&$mine"
like "$answer" 'HF_DENIED*certificate cannot be trusted*' 'another authority: denied'
ask s open "etcd://$t?verify=off&$mine"
is "$answer" ok 'unless verification is switched off'
ask s close
ask s open "etcd://$t?ca=$dir/ca.crt"
like "$answer" 'HF_DENIED*cert=*' 'a server that wants our certificate and gets none'
ask s open "etcd://$t?ca=$dir/ca.crt&cert=$dir/stranger.crt&key=$dir/stranger.key"
like "$answer" 'HF_DENIED*cert=*' 'or one it does not know'
ask s open "etcd://$t?ca=$dir/nowhere"
like "$answer" 'HF_INVALID*nowhere*' 'a file that is not there'
ask s open "etcd://$t?ca=$dir/ca.crt&cert=$dir/password&key=$dir/password"
like "$answer" 'HF_DENIED*our certificate or key*' 'a file that is no certificate'
ask s open "etcd://$t"
like "$answer" 'HF_UNREACHABLE*' 'plain talk to a TLS port'
ask s open "etcd://$host?tls=on"
like "$answer" 'HF_UNREACHABLE*TLS*' 'TLS to a plain port'
scheme=https ctl_options="--insecure-skip-tls-verify --insecure-transport=false"
etcd_start n --cert-file "$dir/elsewhere.crt" --key-file "$dir/elsewhere.key"
ask s open "etcd://127.0.0.1:$(port n)?ca=$dir/ca.crt"
like "$answer" 'HF_DENIED*host name*' 'a certificate for another name: denied'
done_testing
