#!/bin/sh
# deps.sh GROUP... - make sure that the Debian packages of the groups are there.
#
# Silent when nothing is missing. Otherwise installs it, as root or with a sudo that asks nothing;
# where it may not, prints the one line to run and exits 1.
set -eu

build='gcc make pkg-config libc6-dev'
stores=$("$(dirname "$0")/plugins.sh" apt)
check='libcmocka-dev g++ binutils perl util-linux bsdutils procps jq strace zsh fish groff-base git python3
    python3-jsonschema sqlite3 faketime openssl bindfs clang libclang-rt-14-dev tzdata systemd e2fsprogs
    xfsprogs'
test='redis-server redis-tools
    postgresql postgresql-client mariadb-server mariadb-client spin
    python3-sqlalchemy python3-psycopg2 python3-psycopg alembic python3-django php-cli php-pgsql libpostgresql-jdbc-java
    python3-pymysql python3-pip python3-setuptools python3-wheel golang-go golang-github-lib-pq-dev default-jdk-headless
    pgbouncer etcd-server etcd-client curl zookeeper python3-kazoo chromium nginx-light haproxy'
# Prometheus is not among them, because its package starts a server: tests/serve/prometheus.sh unpacks it.
# Where there is npm, node may not be Debian's, and does not go with its packages; a test takes it from npm.
command -v npm >/dev/null 2>&1 || test="$test nodejs node-pg npm libnode-dev"
bench='util-linux python3 python3-redis'
versions='patchelf dpkg-dev'
# Without what the build of a package wants: debian/control says that.
packages='dpkg-dev debhelper dh-python fakeroot lintian mmdebstrap systemd-container
    pybuild-plugin-pyproject python3-all python3-setuptools faketime'
lint='clang-format clang-tidy cppcheck shellcheck mandoc'

wanted=
for group in "$@"; do
    case $group in
    build) wanted="$wanted $build" ;;
    stores) wanted="$wanted $stores" ;;
    check) wanted="$wanted $check" ;;
    test) wanted="$wanted $test" ;;
    bench) wanted="$wanted $bench" ;;
    versions) wanted="$wanted $versions" ;;
    lint) wanted="$wanted $lint" ;;
    packages) wanted="$wanted $packages" ;;
    *)
        echo "deps.sh: unknown group '$group'; known are: build stores check test versions bench lint packages" >&2
        exit 64
        ;;
    esac
done
[ -n "$wanted" ] || exit 0

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "deps.sh: not a Debian system; this is needed, under your system's names:$wanted" >&2
    exit 0
fi

# A package may be there under the name of another that provides it, so those names count too.
missing=
installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' 2>/dev/null |
    sed -n 's/^installed //; T; s/([^)]*)//g; s/,/ /g; p' | tr '\n' ' ')"
for package in $wanted; do
    case "$installed $missing " in
    *" $package "*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

line="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then
    as_root='env'
elif sudo -n true 2>/dev/null; then
    as_root='sudo -n env'
else
    echo "Some packages are missing. Please run:  sudo $line" >&2
    exit 1
fi

echo "installing:$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    # shellcheck disable=SC2086 # both are lists of words
    $as_root DEBIAN_FRONTEND=noninteractive $line -o DPkg::Lock::Timeout=120 -qq </dev/null
}
# The lists of packages may be missing or too old; they are fetched only then.
if ! install >"$log" 2>&1; then
    if ! { $as_root apt-get update -qq </dev/null && install; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "The packages could not be installed. Please run:  $line" >&2
        exit 1
    fi
fi
