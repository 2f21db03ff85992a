#!/bin/bash
# The lines that docs/fencing.md gives to applications, in their languages: a token is admitted, a stale one has
# the code that the page says, and changes nothing. (run: once)
# shellcheck disable=SC2119,SC2016 # arguments are for those who want to say more; $ is of the languages
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
read -r port web web2 <<<"$("$root/tests/support/free_ports.py" 3)"
pg_start listen_addresses=127.0.0.1 port="$port" || { echo "Bail out! no database"; exit 1; }
export PGPORT=$port APP_PORT=$port
ask postgres "CREATE TABLE orders (id int PRIMARY KEY, state text); INSERT INTO orders VALUES (1, 'new');"
fence sql --dialect postgres --table orders | pg

block() { # NAME : the lines of the page
    awk -v name="$1" '$0 == "<!-- app: " name " -->" { on = 1; next } on && /^```/ { if (inside) exit; inside = 1; next }
        inside { print }' "$root/docs/fencing.md"
}

part() { # NAME : the program around them
    case $1 in
    sqlalchemy) cat <<'END'
import os, sys
from sqlalchemy import create_engine, event, text
from sqlalchemy.orm import Session
engine = create_engine("postgresql+psycopg2://owner@127.0.0.1:%s/postgres" % os.environ["APP_PORT"])
END
        block sqlalchemy
        cat <<'END'
try:
    with Session(engine, info={"fencing_token": int(sys.argv[1])}) as session, session.begin():
        session.execute(text("UPDATE orders SET state = 'paid'"))
    print("done")
except Exception as error:
    print(error.orig.pgcode)
END
        ;;
    django) cat <<'END'
import os, sys, django
from django.conf import settings
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres",
    "HOST": "127.0.0.1", "PORT": os.environ["APP_PORT"], "USER": "owner"}})
django.setup()
from django.db import connection, transaction
token = int(sys.argv[1])
try:
END
        block django | sed 's/^/    /'
        echo '    print("done")'
        echo 'except Exception as error:'
        echo '    print(error.__cause__.pgcode)'
        ;;
    psycopg) cat <<'END'
import os, sys, psycopg
connection = psycopg.connect(host="127.0.0.1", port=os.environ["APP_PORT"], user="owner", dbname="postgres", autocommit=True)
token = int(sys.argv[1])
try:
END
        block psycopg | sed 's/^/    /'
        echo '    print("done")'
        echo 'except psycopg.Error as error:'
        echo '    print(error.sqlstate)'
        ;;
    php) cat <<'END'
<?php
$db = new PDO("pgsql:host=127.0.0.1;port=" . getenv("APP_PORT") . ";dbname=postgres;user=owner");
$db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
$token = $argv[1];
try {
END
        block php
        echo 'echo "done"; } catch (PDOException $error) { echo $error->getCode(); }'
        ;;
    node) cat <<'END'
const { Client } = require("pg");
(async () => {
const token = process.argv[2];
const client = new Client({ host: "127.0.0.1", port: process.env.APP_PORT, user: "owner", database: "postgres" });
await client.connect();
try {
END
        block node
        echo 'console.log("done"); } catch (error) { console.log(error.code); } finally { await client.end(); } })();'
        ;;
    service) cat <<'END'
const http = require("http");
const { Pool } = require("pg");
const pool = new Pool({ host: "127.0.0.1", port: process.env.APP_PORT, user: "owner", database: "postgres" });
END
        block service
        ;;
    java) cat <<'END'
import java.sql.*;
class App {
    public static void main(String[] words) throws Exception {
        var connection = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + System.getenv("APP_PORT") + "/postgres?user=owner");
        long token = Long.parseLong(words[0]);
        try {
END
        block java
        echo 'System.out.println("done"); } catch (SQLException error) { System.out.println(error.getSQLState()); } } }'
        ;;
    esac
}

start_app() { # NAME TOKEN
    case $1 in
    php) php "$dir/app.php" "$2" ;;
    node) NODE_PATH=$node_path node "$dir/app.js" "$2" ;;
    java) java -cp /usr/share/java/postgresql.jar "$dir/App.java" "$2" ;;
    *) /usr/bin/python3 "$dir/app.$1" "$2" ;;
    esac 2>"$dir/err"
}

# Debian's node-pg, or the same from npm where node is not Debian's.
node_path=/usr/share/nodejs:/usr/lib/nodejs
node_there() {
    command -v node || return 1
    NODE_PATH=$node_path node -e 'require("pg")' && return 0
    node_path=$root/build/http/node/node_modules
    NODE_PATH=$node_path node -e 'require("pg")' && return 0
    mkdir -p "$root/build/http/node" &&
        (cd "$root/build/http/node" && npm install --silent --no-audit --no-fund --prefix . pg@8.8.0) &&
        NODE_PATH=$node_path node -e 'require("pg")'
}

there() { # NAME : what it needs
    case $1 in
    sqlalchemy) /usr/bin/python3 -c 'import sqlalchemy, psycopg2' ;;
    django) /usr/bin/python3 -c 'import django, psycopg2' ;;
    psycopg) /usr/bin/python3 -c 'import psycopg' ;;
    php) php -m | grep -q pdo_pgsql ;;
    node | service) node_there ;;
    java) command -v javac && [ -f /usr/share/java/postgresql.jar ] ;;
    esac >/dev/null 2>&1
}

token=1794780471337312
for app in sqlalchemy django psycopg php node java; do
    [ -n "$(block $app)" ]
    ok $? "$app: the page has lines for it"
    if ! there $app; then
        ok 0 "$app # SKIP it is not installed"
        continue
    fi
    case $app in php) file=app.php ;; node) file=app.js ;; java) file=App.java ;; *) file=app.$app ;; esac
    part $app >"$dir/$file"
    ask postgres "BEGIN; CALL holdfast_fence.enter('public.orders', $token); UPDATE orders SET state = 'new'; COMMIT;"
    is "$(start_app $app $((token + 1)))" "done" "$app: the holder's token is admitted"
    [ ! -s "$dir/err" ] || diag "$(tail -3 "$dir/err")"
    ask postgres "BEGIN; CALL holdfast_fence.enter('public.orders', $((token + 2))); UPDATE orders SET state = 'newer'; COMMIT;"
    is "$(start_app $app $((token + 1)))" ZHF01 "$app: a stale one has the code that means 412"
    ask postgres "SELECT state FROM orders;"
    is "$out" newer "$app: and changes nothing"
    token=$((token + 10))
done

# ---- the service: a header in front, and what each refusal is to its client ----
paid() { # HEADER... : what a request is answered
    curl -sS -o /dev/null -w '%{http_code}' --max-time 60 -X POST "$@" "http://127.0.0.1:$web/"
}
if ! there service; then
    ok 0 "service # SKIP node has no pg"
else
    part service >"$dir/service.js"
    PORT=$web NODE_PATH=$node_path node "$dir/service.js" 2>"$dir/err" &
    started="$started $!"
    within 30 paid >/dev/null 2>&1
    ask postgres "BEGIN; CALL holdfast_fence.enter('public.orders', $token); UPDATE orders SET state = 'new'; COMMIT;"
    is "$(paid -H "Fencing-Token: $((token + 1))")" 204 'service: the token of the header is admitted'
    ask postgres "SELECT state FROM orders;"
    is "$out" paid 'service: and the work is done'
    ask postgres "BEGIN; CALL holdfast_fence.enter('public.orders', $((token + 2))); UPDATE orders SET state = 'newer'; COMMIT;"
    is "$(paid -H "Fencing-Token: $((token + 1))")" 412 'service: a stale one is answered 412'
    ask postgres "SELECT state FROM orders;"
    is "$out" newer 'service: and changes nothing'
    is "$(paid)" 400 'service: without the header 400'
    is "$(paid -H 'Fencing-Token: 12x')" 400 'service: with nonsense in it 400'
    # A holder that freezes inside its transaction.
    ask postgres "ALTER ROLE owner SET holdfast.enter_wait = '300ms';"
    web=$web2
    PORT=$web NODE_PATH=$node_path node "$dir/service.js" 2>>"$dir/err" &
    started="$started $!"
    within 30 paid >/dev/null 2>&1
    mkfifo "$dir/frozen"
    pg <"$dir/frozen" >"$dir/frozen.out" &
    exec 8>"$dir/frozen"
    echo "BEGIN; CALL holdfast_fence.enter('public.orders', $((token + 3))); SELECT 'inside';" >&8
    within 30 grep -q inside "$dir/frozen.out"
    is "$(paid -H "Fencing-Token: $((token + 4))")" 503 'service: somebody who does not end is answered 503'
    exec 8>&-
    [ ! -s "$dir/err" ] || diag "$(tail -3 "$dir/err")"
fi
done_testing
