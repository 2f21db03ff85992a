#!/bin/bash
# run.sh [NAME...] - the tests of a store or a fence against other versions of its server.
#
# Fetches the servers of tests/versions/servers (or those named), runs the conformance suite, the store's
# own tests and the fence's against each, names what could not be had, and writes their rows of the table in
# docs/versions.md.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-versions.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
export BUILD=build HOLDFAST=$PWD/build/holdfast CMOCKA_MESSAGE_OUTPUT=TAP
passed=0 failed=0 missing=0

# Neither what takes minutes nor what does not depend on the server.
tests_of() { # KIND
    case $1 in
    redis) ls tests/conform/redis.t tests/conform/redlock.t tests/redis/*.t tests/redlock/*.t ;;
    etcd) ls tests/conform/etcd*.t tests/etcd/*.t ;;
    zookeeper) ls tests/conform/zookeeper*.t tests/zookeeper/*.t ;;
    postgres) ls tests/conform/postgres.t tests/postgres/*.t tests/fence/sql*.t ;;
    mariadb) ls tests/fence/sql*.t ;;
    esac | grep -v /fuzz | xargs grep -L 'run: long'
}

row() { printf '%s\n' "$*" >>"$work/table"; }

own_version() { # KIND : of this machine's server
    case $1 in
    redis) redis-server --version ;;
    etcd) etcd --version ;;
    zookeeper) dpkg-query -W -f '${Package} ${Version}\n' zookeeper ;;
    postgres) "$(find /usr/lib/postgresql/*/bin -maxdepth 0 | sort -V | tail -n 1)/postgres" --version ;;
    mariadb) mariadbd --version ;;
    esac
}

# "Redis 8.0.2" out of what a server says of itself.
short_version() { # KIND
    local number
    read -r line
    number=$(grep -oE '[0-9]+(\.[0-9]+)+' <<<"${line#* }" | head -n 1) # the first word may be a path
    case $line in
    Valkey*) echo "Valkey $number" ;;
    Redis*) echo "Redis $number" ;;
    *) case $1 in
        etcd) echo "etcd $number" ;;
        zookeeper) echo "ZooKeeper $number" ;;
        postgres) echo "PostgreSQL $number" ;;
        mariadb) echo "MariaDB $number" ;;
        esac ;;
    esac
}

try() { # NAME KIND
    local tap=$work/$1.tap good bad shown
    shown=$(short_version "$2" <"build/versions/$1/version")
    echo "== $1: $shown"
    # shellcheck disable=SC2046,SC1090 # plain names; what fetch.sh wrote
    (
        . "build/versions/$1/env"
        PERL_TEST_HARNESS_DUMP_TAP=$tap prove -j4 --timer $(tests_of "$2") 2>"$work/$1.err" </dev/null
    ) | tee "$work/$1.prove" | grep -v ' ok '
    good=$(find "$tap" -type f -exec cat {} + | grep -c '^ok')
    bad=$(find "$tap" -type f -exec cat {} + | grep -c '^not ok')
    find "$tap" -type f -exec grep -H -B3 -A3 '^not ok' {} + | sed "s|^$tap/||"
    if [ "$bad" -eq 0 ] && ! grep -q '^Result: PASS' "$work/$1.prove"; then bad=1; fi
    passed=$((passed + good)) failed=$((failed + bad))
    row "| $shown | $good passed, $bad failed |"
}

grep -v '^#' tests/versions/servers >"$work/servers"
for kind in redis etcd zookeeper postgres mariadb; do
    row "| $(own_version $kind | short_version $kind) | in every run of the tests |"
done
while read -r name suite kind packages; do
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    # shellcheck disable=SC2086 # a list of words
    if tests/versions/fetch.sh "$name" "$suite" "$kind" $packages >"$work/fetch"; then
        try "$name" "$kind"
    else
        missing=$((missing + 1))
        sed 's/^/could not be had: /' "$work/fetch"
        row "| $name | could not be had |"
    fi
done <"$work/servers"

# A row of a server that was tested now takes the place of its old one.
if [ $# -eq 0 ]; then
    { sed '/^| server/q' docs/versions.md && echo '|---|---|' && cat "$work/table"; } >"$work/page"
else
    awk -F ' [|] ' 'NR == FNR { new[$1] = $0; next } $1 in new { $0 = new[$1]; delete new[$1] } { print }
        END { for (name in new) print new[name] }' "$work/table" docs/versions.md >"$work/page"
fi
cp "$work/page" docs/versions.md
echo "$passed passed, $failed failed, $missing skipped"
[ "$failed" -eq 0 ] && [ "$missing" -eq 0 ]
