#!/bin/bash
# Who is let in, and what those are told who are not. Passwords and owners are never shown.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_init a
cd "$dir" || exit 1
certificate() { # NAME SUBJECT-ALT-NAME
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -addext "subjectAltName=$2" \
        -keyout "$1.key" -out "$1.crt" >/dev/null 2>&1
}
certificate server IP:127.0.0.1
certificate stranger DNS:elsewhere.example
chmod 644 ./*.crt
cp server.crt server.key "$dir/pg/"
[ -z "$as" ] || chown nobody "$dir/pg/server.key" "$dir/pg/server.crt"
chmod 600 "$dir/pg/server.key"
cat >"$dir/pg/a/pg_hba.conf" <<'END'
host    all postgres 127.0.0.1/32 trust
hostssl all tls      127.0.0.1/32 scram-sha-256
host    all nobody   127.0.0.1/32 reject
host    all tls      127.0.0.1/32 reject
host    all all      127.0.0.1/32 scram-sha-256
END
pg_start a ssl=on "ssl_cert_file=$dir/pg/server.crt" "ssl_key_file=$dir/pg/server.key"
sql a "CREATE ROLE app LOGIN PASSWORD 's3cret'" "CREATE ROLE tls LOGIN PASSWORD 's3cret'" \
    'CREATE ROLE nobody LOGIN'
at=127.0.0.1:$(port a)/postgres

attempt() { # URL : opens it in a fresh client
    client t
    ask t open "$1"
    gone t
}
sentence() { # PATTERN DESCRIPTION : one clear sentence without secrets
    like "$answer" "$1" "$2"
    [[ $answer != *s3cret* && $answer != *wr0ng* ]]
    ok $? '... which holds no password'
}

# passwords
attempt "postgres://app:wr0ng@$at"
sentence 'HF_DENIED*store postgres://app*@127.0.0.1*refuses the password*' 'a wrong password'
attempt "postgres://app@$at"
sentence 'HF_DENIED*refuses the password, or there is none: set PGPASSFILE*' 'no password'
attempt "postgres://nobody@$at"
sentence 'HF_DENIED*does not let us in*' 'a role the server rejects'

# A password for another host. 0.0.0.0 leads to our own, but by its name it might be any.
warned() { # URL
    "$hf" --store "$1" list >"$dir/out" 2>"$dir/err" && [ ! -s "$dir/out" ] &&
        grep -q '^holdfast: warning: store postgres://app.*sslmode=verify-full$' "$dir/err"
}
warned "postgres://app:s3cret@0.0.0.0:$(port a)/postgres"
ok $? 'a password that may have gone to anybody is warned of'
! grep -q s3cret "$dir/err"
ok $? '... without telling it'
warned "postgres://app:s3cret@0.0.0.0:$(port a)/postgres?channel_binding=require"
is $? 1 'not if it is bound to the server'
warned "postgres://app:s3cret@$at"
is $? 1 'nor on this host'
! grep -q warning "$dir/err"
ok $? '... where there is nothing to warn of'

# no right to make the schema, no right to use it
sql a 'REVOKE CREATE ON DATABASE postgres FROM PUBLIC'
attempt "postgres://app:s3cret@$at"
sentence 'HF_DENIED*permission denied for database postgres; let a role that may create the schema*' \
    'a role that may not create the schema'
attempt "$(url a)"
is "$answer" ok 'its owner makes it'
attempt "postgres://app:s3cret@$at"
sentence 'HF_DENIED*permission denied for schema holdfast; its owner grants it with GRANT USAGE ON SCHEMA holdfast*' \
    'a role without the grant'
sql a 'GRANT USAGE ON SCHEMA holdfast TO app, tls'
client app "postgres://app:s3cret@$at"
is "$answer" ok 'with that one grant'
ask app acquire 1 x 20000 0
like "$answer" 'ok *' 'a restricted role takes a lock'
ask app owner 1
owner=${answer#ok }
client app2 "postgres://app:s3cret@$at"
ask app2 acquire 1 x 20000 0
like "$answer" 'HF_BUSY*' 'is refused one'
[[ $answer != *"$owner"* ]]
ok $? 'without being told the owner'
tell app2 acquire 1 x 20000 20000
eventually 10 waiting a x 1
ask app renew 1 20000
is "$answer" ok 'renews it'
ask app list -
like "$answer" 'ok \[x held=1 *' 'lists it'
ask app release 1
is "$answer" ok 'releases it'
hear app2
like "$answer" 'ok *' 'and is handed one'
for table in lock waiter met version opened; do
    PGPASSWORD=s3cret psql -XAtq -h 127.0.0.1 -p "$(port a)" -U app -d postgres \
        -c "SELECT * FROM holdfast.$table" >"$dir/out" 2>&1
    grep -q 'permission denied for table' "$dir/out"
    ok $? "but cannot read holdfast.$table, where owners are"
done
PGPASSWORD=s3cret psql -XAtq -h 127.0.0.1 -p "$(port a)" -U app -d postgres \
    -c "SET search_path = public, pg_catalog; SELECT holdfast.pass_on('x')" >"$dir/out" 2>&1
grep -q 'permission denied' "$dir/out"
ok $? 'nor call what is internal'
ask app2 release 1

# a search path in which somebody else's objects come before the server's own
sql a 'CREATE DATABASE shared'
database=shared
sql a 'CREATE SCHEMA snare' \
    "CREATE FUNCTION snare.pg_backend_pid() RETURNS integer LANGUAGE sql AS
        'SELECT nextval(''snare.sprung'')::integer'" \
    'CREATE SEQUENCE snare.sprung' \
    'CREATE DOMAIN snare.bytea AS pg_catalog.bytea CHECK (length(VALUE) = 77)' \
    'CREATE DOMAIN snare.text AS pg_catalog.text CHECK (length(VALUE) = 77)' \
    'CREATE TABLE snare.pg_class (oid oid, relname name, relnamespace oid)' \
    'ALTER DATABASE shared SET search_path = snare, pg_catalog' 2>"$dir/out"
is "$(sql a 'SHOW search_path')" 'snare, pg_catalog' 'a search path that leads astray'
client prey "$(url a)"
is "$answer" ok 'the schema is made there'
is "$(sql a "SELECT DISTINCT t.typnamespace::regnamespace FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE attrelid = 'holdfast.lock'::regclass AND attnum > 0")" pg_catalog 'of the types that it means'
client prey2 "$(url a)"
is "$answer" ok 'and found again'
ask prey acquire 1 x 20000 0
like "$answer" 'ok *' 'a lock is taken'
tell prey2 acquire 1 x 20000 20000
eventually 10 waiting a x 1
ask prey renew 1 20000
ask prey list -
like "$answer" 'ok \[x held=1 *waiters=1 *' 'listed'
ask prey release 1
is "$answer" ok 'released'
hear prey2
like "$answer" 'ok *' 'and passed on'
is "$(sql a 'SELECT is_called FROM snare.sprung')" f "without a call of what is somebody else's"
unset database

# the password from elsewhere
echo "*:*:*:app:s3cret" >"$dir/pass"
chmod 600 "$dir/pass"
attempt "postgres://app@$at?passfile=$dir/pass"
is "$answer" ok 'a password file'
"$hf" --store "postgres://app:s3cret@$at" run x -- sh -c 'echo "$HOLDFAST_STORE"' >"$dir/out" 2>&1
grep -q '^postgres://app' "$dir/out" && ! grep -q s3cret "$dir/out"
ok $? 'run tells its child the store without the password'

# TLS
attempt "postgres://tls:s3cret@$at?sslmode=disable"
sentence 'HF_DENIED*' 'a server that insists on TLS'
attempt "postgres://tls:s3cret@$at?sslmode=verify-full&sslrootcert=$dir/server.crt"
is "$answer" ok 'TLS with a verified server'
attempt "postgres://tls:s3cret@$at?sslmode=verify-full&sslrootcert=$dir/stranger.crt"
sentence 'HF_DENIED*certificate verify failed*' 'a server whose certificate nobody vouches for'
attempt "postgres://tls:s3cret@localhost:${at#*:}?sslmode=verify-full&sslrootcert=$dir/server.crt"
sentence 'HF_DENIED*certificate*does not match host name*' 'a certificate for another name'
attempt "postgres://tls:s3cret@$at?sslmode=verify-full&sslrootcert=$dir/none.crt"
sentence 'HF_DENIED*root certificate file*does not exist*' 'no certificate to verify with'
sql a 'ALTER SYSTEM SET ssl = off' 'SELECT pg_reload_conf()' >/dev/null
eventually 10 says off a 'SHOW ssl'
pg_stop a
server_options[a]=
pg_again a
attempt "postgres://postgres@$at?sslmode=require"
sentence 'HF_DENIED*does not support SSL*' 'a server without TLS, where it is required'
attempt "postgres://postgres@$at"
is "$answer" ok 'where it is not, it works without'
done_testing
