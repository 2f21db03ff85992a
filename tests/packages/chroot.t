#!/bin/bash
# The Debian packages in a system made of Debian's: installed, used by programs, upgraded under a running job, removed,
# purged. Where systemd can be booted in a container, the units as well.
# run: long
# run: once
set -u
LIMIT_S=1400
. "$(dirname "$0")/../cli/lib.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}
[ "$(id -u)" = 0 ] || skip_all 'only root can make a chroot'
for tool in mmdebstrap systemd-nspawn dpkg-buildpackage dh; do
    command -v "$tool" >/dev/null || skip_all "$tool is not installed: scripts/deps.sh packages"
done
suite=$(. /etc/os-release && echo "${VERSION_CODENAME-}")

scripts/deb.sh "$dir/debs" >"$dir/out" 2>&1
built=$?
ok $built 'make deb'
[ $built -eq 0 ] || {
    diag "$(cat "$dir/out")"
    exit 1
}
mmdebstrap --variant=minbase --skip=cleanup/apt/lists --include=systemd-sysv,dbus,gcc,g++,libc6-dev,pkgconf,python3-minimal,procps "$suite" "$dir/root" \
    >"$dir/mm" 2>&1 || skip_all "no packages of Debian to be had: $(tail -n 1 "$dir/mm")"

mkdir -p "$dir/root/debs/next" "$dir/root/tree/bindings/cpp"
cp "$dir"/debs/*.deb "$dir/root/debs/"
rm "$dir"/root/debs/*-dbgsym_*
cp README.md "$dir/root/tree/"
cp bindings/cpp/README.md "$dir/root/tree/bindings/cpp/"
cp tests/packages/inside.sh "$dir/root/tree/"
# The same once more, as what comes after it, with newer units.
for deb in "$dir"/root/debs/*.deb; do
    rm -rf "$dir/unpacked"
    dpkg-deb -R "$deb" "$dir/unpacked"
    sed -i 's/\(Version: \|(= \)\([0-9.]*\)/\1\2+next/' "$dir/unpacked/DEBIAN/control"
    find "$dir/unpacked" -path '*/systemd/system/*' -type f -exec touch {} +
    dpkg-deb -b --root-owner-group "$dir/unpacked" "$dir/root/debs/next/" >/dev/null
done
# With a name server, if there is one: what ours depend on comes from Debian.
cp /etc/resolv.conf "$dir/root/etc/resolv.conf" 2>/dev/null
cp /etc/hosts "$dir/root/etc/hosts"
env | grep -i '_proxy=' >"$dir/root/etc/environment"
cp /etc/apt/apt.conf.d/*proxy* "$dir/root/etc/apt/apt.conf.d/" 2>/dev/null

# In a system that is booted a unit runs the script, and turns the machine off.
cat >"$dir/root/etc/systemd/system/inside.service" <<'END'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
EnvironmentFile=-/etc/environment
ExecStart=/bin/bash -c '/tree/inside.sh >/result 2>&1; sync'
ExecStopPost=/bin/systemctl poweroff --force --force
END
mkdir -p "$dir/root/etc/systemd/system/default.target.wants"
ln -sf ../inside.service "$dir/root/etc/systemd/system/default.target.wants/inside.service"
# What is booted ends with whoever waits for it.
nspawn=(setpriv --pdeathsig KILL systemd-nspawn --quiet --register=no --keep-unit --directory="$dir/root" --console=pipe)
start timeout 500 "${nspawn[@]}" --boot >"$dir/boot" 2>&1 </dev/null
ended "$pid"
if [ ! -s "$dir/root/result" ]; then
    diag "systemd cannot be booted here: $(tail -n 1 "$dir/boot")" 'not tried: the units under systemd'
    timeout 500 "${nspawn[@]}" /tree/inside.sh >"$dir/root/result" 2>&1 </dev/null
fi
while IFS= read -r line; do
    case $line in
    'ok - '*) ok 0 "${line#ok - }" ;;
    'not ok - '*) ok 1 "${line#not ok - }" ;;
    *) diag "$line" ;;
    esac
done <"$dir/root/result"
grep -qx 'ok - to the end' "$dir/root/result"
ok $? 'it came to its end'
done_testing
