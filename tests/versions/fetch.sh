#!/bin/sh
# fetch.sh NAME SUITE KIND PACKAGE... - unpacks a server of another Debian suite, and installs nothing.
#
# The packages and all they depend on are fetched by apt with a configuration of its own and
# unpacked into build/versions/NAME/root. Programs there are told to use the loader and the libraries
# that came with them. build/versions/NAME/env says in shell what a test needs to use them.
# Exit 1, with the reason, if they cannot be had. What is there already is left as it is.
set -eu
cd "$(dirname "$0")/../.."
name=$1 suite=$2 kind=$3
shift 3
top=$PWD/build/versions
place=$top/$name
apt=$top/apt-$suite
[ ! -e "$place/env" ] || exit 0

fail() {
    echo "$name: $*"
    exit 1
}

# The archive that this machine uses is the one that has the other suites.
archive() {
    sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' \
        /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null |
        sed -n 's|/debian/*$|&|p' | head -n 1
}

prepare_apt() {
    uri=$(archive)
    [ -n "$uri" ] || fail 'no Debian archive is set up here'
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $suite main" \
        >"$apt/sources.list"
    cat >"$apt/apt.conf" <<END
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State::Lists "$apt/lists";
Dir::State::Status "$apt/status";
Dir::Cache "$apt/cache";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
END
    APT_CONFIG=$apt/apt.conf apt-get update -qq >"$apt/log" 2>&1 ||
        fail "the lists of '$suite' cannot be had: $(tail -n 1 "$apt/log")"
    touch "$apt/ready"
}

unpack() {
    # Packages that were fetched already would not be named: hence an empty cache.
    mkdir -p "$apt/none/partial"
    APT_CONFIG=$apt/apt.conf apt-get install -y -qq --print-uris \
        -o Dir::Cache::Archives="$apt/none" "$@" 2>"$apt/log" |
        sed -n "s/^'[^']*' \([^ ]*\.deb\) .*/\1/p" >"$apt/$name.debs" || true
    [ -s "$apt/$name.debs" ] || fail "not in '$suite': $*"
    APT_CONFIG=$apt/apt.conf apt-get install -y -qq --download-only "$@" >"$apt/log" 2>&1 ||
        fail "cannot be fetched: $(tail -n 1 "$apt/log")"
    rm -rf "$place"
    mkdir -p "$place/root" "$place/bin"
    # Where newer suites have one folder, older packages have two.
    for folder in bin sbin lib lib64; do
        mkdir -p "$place/root/usr/$folder"
        ln -s "usr/$folder" "$place/root/$folder"
    done
    while read -r deb; do
        dpkg-deb --fsys-tarfile "$apt/cache/archives/$deb" |
            tar -x -C "$place/root" --keep-directory-symlink --no-same-owner ||
            fail "$deb cannot be unpacked"
    done <"$apt/$name.debs"
}

# The loader's path stands in each program; the libraries are found before the machine's own.
use_own_loader() { # FOLDER...
    command -v patchelf >/dev/null || fail 'patchelf is not installed'
    triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo x86_64-linux-gnu)
    for folder in "$@"; do
        for file in "$folder"/*; do
            if [ ! -f "$file" ] || [ -L "$file" ]; then continue; fi
            loader=$(patchelf --print-interpreter "$file" 2>/dev/null) || continue
            patchelf --set-interpreter "$place/root$loader" --force-rpath \
                --set-rpath "$place/root/usr/lib/$triplet:$place/root/usr/lib" "$file" ||
                fail "$file cannot be made to use its own libraries"
        done
    done
}

# wrapper NAME PROGRAM [OPTION...] : as PROGRAM; its first word stays first, the options follow
wrapper() {
    as=$1 program=$2
    shift 2
    {
        echo '#!/bin/sh'
        # shellcheck disable=SC2016 # for the wrapper
        echo 'first=$1; [ $# -eq 0 ] || shift'
        printf 'exec "%s" ${first:+"$first"} %s "$@"\n' "$program" "$*"
    } >"$place/bin/$as"
    chmod 755 "$place/bin/$as"
}

own_programs() { # [PREFIX] : everything of usr/bin, under the names that the tests know
    for file in "$place"/root/usr/bin/*; do
        base=${file##*/}
        ln -s "$file" "$place/bin/$base"
        case $base in valkey-*) ln -s "$file" "$place/bin/redis-${base#valkey-}" ;; esac
    done
}

[ -e "$apt/ready" ] || prepare_apt
unpack "$@"
root=$place/root
case $kind in
redis)
    use_own_loader "$root/usr/bin"
    own_programs
    line="PATH=$place/bin:\$PATH"
    version=$("$place/bin/redis-server" --version) || fail 'it does not start'
    ;;
etcd)
    use_own_loader "$root/usr/bin"
    own_programs
    line="PATH=$place/bin:\$PATH"
    version=$("$place/bin/etcd" --version) || fail 'it does not start'
    ;;
zookeeper)
    line="TEST_ZOOKEEPER_JARS='$root/usr/share/java/*'"
    version=$(basename "$(readlink -f "$root/usr/share/java/zookeeper.jar")" .jar)
    ;;
postgres)
    bin=$(find "$root"/usr/lib/postgresql/*/bin -maxdepth 0)
    use_own_loader "$bin"
    line="TEST_POSTGRES_BIN=$bin"
    version=$("$bin/postgres" --version) || fail 'it does not start'
    ;;
mariadb)
    use_own_loader "$root/usr/bin" "$root/usr/sbin"
    for program in mariadb-install-db mariadb mariadb-dump; do
        ln -s "$root/usr/bin/$program" "$place/bin/$program"
    done
    rm "$place/bin/mariadb-install-db"
    wrapper mariadb-install-db "$root/usr/bin/mariadb-install-db" "--basedir=$root/usr"
    wrapper mariadbd "$root/usr/sbin/mariadbd" "--basedir=$root/usr" \
        "--lc-messages-dir=$root/usr/share/mysql"
    line="PATH=$place/bin:\$PATH"
    version=$("$root/usr/sbin/mariadbd" --version) || fail 'it does not start'
    ;;
*) fail "what is a '$kind'?" ;;
esac
printf '%s\n' "$version" | head -n 1 >"$place/version"
echo "export $line" >"$place/env"
