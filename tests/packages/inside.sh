#!/bin/bash
# inside.sh - run by chroot.t inside a system made of Debian's packages: /debs has ours, /debs/next the same as a later
# version, /tree the files of this tree that are tried. Prints "ok - TEXT" or "not ok - TEXT".
# shellcheck disable=SC2317,SC2016 # called by name; for other shells
set -u
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
unset HOLDFAST_STORE HOLDFAST_DIR STATE_DIRECTORY NOTIFY_SOCKET

ok() { # STATUS TEXT
    if [ "$1" -eq 0 ]; then echo "ok - $2"; else echo "not ok - $2" && tail -n 5 /tmp/said | sed 's/^/#   /'; fi
}
is() { # GOT WANTED TEXT
    [ "$1" = "$2" ]
    ok $? "$3"
    [ "$1" = "$2" ] || printf '#   got:    %s\n#   wanted: %s\n' "$1" "$2"
}
quietly() { "$@" >/tmp/said 2>&1 </dev/null; }
within() { # SECONDS COMMAND...
    local until=$((SECONDS + $1 + 1))
    shift
    until quietly "$@"; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.05
    done
}
debs() { # FOLDER NAME... : the files of these packages
    local folder=$1 name
    shift
    for name; do echo "$folder/${name}"_*.deb; done
}
booted() { [ -d /run/systemd/system ]; }

install_them() {
    # shellcheck disable=SC2046 # a list
    quietly apt-get install -y --no-install-recommends $(debs /debs holdfast libholdfast0 libholdfast-dev)
    ok $? 'the program and the library are installed'
    is "$(holdfast version)" "holdfast $(dpkg-query -W -f '${Version}' holdfast)" 'the program runs'
    quietly holdfast run first -- true
    ok $? 'and takes a lock, in the embedded store'
    is "$(stat -c %U:%a /var/lib/holdfast)" root:700 'which is for root alone'
    quietly holdfast --store redis://127.0.0.1:1 run -n first -- true
    is "$?" 64 'a store of another kind is not there yet'
    grep -q 'apt install holdfast-redis' /tmp/said
    ok $? 'the error names its package'
    quietly apt-get install -y --no-install-recommends /debs/holdfast-{redis,etcd,zookeeper,postgres,mariadb,sqlite,http}_*.deb
    ok $? 'which can be installed, and all the others'
    for url in redis://127.0.0.1:1 etcd://127.0.0.1:1 zookeeper://127.0.0.1:1 postgres://127.0.0.1:1/x; do
        quietly timeout 20 holdfast --store "$url" run -n first -- true
        is "$?" 69 "the plugin for ${url%%:*}: is found, and its server is not"
    done
    quietly timeout 20 holdfast outbox list --db sqlite:/tmp/nothing.db
    ! grep -q 'apt install' /tmp/said
    ok $? 'that of a database is found'
    quietly holdfast serve --listen unix:/tmp/served
    is "$?:$(grep -c 'apt install holdfast-serve' /tmp/said)" 127:1 'the server has a package of its own, which is named'
    quietly apt-get install -y --no-install-recommends /debs/holdfast-serve_*.deb
    ok $? 'and can be installed'
    ! booted || is "$(systemctl is-active holdfast-serve.socket holdfast-serve.service)" $'inactive\ninactive' 'and starts nothing by itself'
    for page in holdfast.1 holdfast-serve.1 holdfast-run.1 holdfast-file.7 holdfast-redis.7 libholdfast.3; do
        [ -e "/usr/share/man/man${page##*.}/$page.gz" ]
        ok $? "there is a man page $page"
    done
}

programs() {
    local example=/tmp/example
    awk '/^```c$/ { inside = 1; next } /^```/ && inside { exit } inside' /tree/README.md >$example.c
    # shellcheck disable=SC2046 # flags
    quietly cc -Wall -Werror $example.c $(pkg-config --cflags --libs holdfast) -o $example
    ok $? "the README's C example builds with the line that the README has"
    quietly $example
    ok $? 'and runs, with no other word about where the library is'
    # shellcheck disable=SC2046
    quietly cc $example.c -static $(pkg-config --cflags --libs --static holdfast) -o $example.static && quietly $example.static
    ok $? 'also linked with the static library'
    awk '/^```cpp$/ { inside = 1; next } /^```/ && inside { exit } inside' /tree/bindings/cpp/README.md >$example.cc
    # shellcheck disable=SC2046
    quietly c++ -std=c++17 $example.cc $(pkg-config --cflags --libs holdfast) -o $example.cpp && quietly $example.cpp
    ok $? 'and the one of C++'
    ls /debs/python3-holdfast_*.deb >/dev/null 2>&1 || return 0
    quietly apt-get install -y --no-install-recommends /debs/python3-holdfast_*.deb
    ok $? 'python3-holdfast is installed'
    quietly python3 -c 'import holdfast
with holdfast.open() as store, store.lock("python", ttl=30) as lease: print(lease.token)'
    ok $? 'and takes a lock'
}

# As a user starts it, without systemd.
served() {
    local server
    holdfast serve --listen unix:/tmp/served >/tmp/serve.said 2>&1 &
    server=$!
    within 20 test -S /tmp/served
    quietly holdfast --store http+unix:///tmp/served run -n served -- holdfast status --held served
    ok $? 'the server serves the embedded store, to the plugin for HTTP'
    kill $server
    wait $server
    is "$?:$(find /tmp -name served)" 0: 'and ends well'
}

# holding NAME : token of who holds it
holding() { holdfast status --json "$1" | sed -n 's/.*"token": *\([0-9]*\).*/\1/p'; }

upgrade() {
    local job token
    holdfast run --ttl 3s --grace 500ms long -- sleep 1000 &
    job=$!
    within 20 holdfast status --held long
    token=$(holding long)
    # shellcheck disable=SC2046
    quietly dpkg -i $(debs /debs/next holdfast libholdfast0 libholdfast-dev) /debs/next/holdfast-*_*.deb
    ok $? 'an upgrade under a running job'
    is "$(holdfast version)" 'holdfast 0.2.0' 'leaves the program usable'
    sleep 4 # longer than the lease
    kill -0 $job && holdfast status --held long >/dev/null
    ok $? 'the job runs on, and its lease is renewed'
    is "$(holding long)" "$token" 'with the same token'
    quietly holdfast run -n long -- true
    is "$?" 75 'the new program knows the lock of the old one'
    kill $job
    wait $job 2>/dev/null
    quietly holdfast run -n long -- true
    ok $? 'and has it when that has ended'
}

remove() {
    local job
    holdfast run --ttl 3s --grace 500ms long -- sleep 1000 &
    job=$!
    within 20 holdfast status --held long
    quietly apt-get remove -y holdfast
    ok $? 'the package is removed under a running job'
    [ ! -e /usr/bin/holdfast ] && [ -d /var/lib/holdfast ] && kill -0 $job
    ok $? 'which runs on; its store is there'
    quietly dpkg --purge holdfast
    grep -q 'stays: a process uses' /tmp/said && [ -d /var/lib/holdfast ]
    ok $? 'a purge leaves the store to it, and says so'
    kill $job
    wait $job 2>/dev/null
    # shellcheck disable=SC2046
    quietly apt-get install -y --no-install-recommends $(debs /debs holdfast)
    quietly dpkg --purge holdfast
    grep -q 'tokens' /tmp/said && [ ! -e /var/lib/holdfast ]
    ok $? 'one when nobody uses it removes it, and speaks of tokens'
    is "$(find /etc/holdfast 2>/dev/null)" '' 'nothing of ours is left in /etc'
    quietly apt-get purge -y 'holdfast-*' 'libholdfast*'
    is "$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' '*holdfast*' 2>/dev/null | grep -v not-installed)" '' 'all packages are gone'
    is "$(find / -xdev -name '*holdfast*' -not -path '/debs/*' -not -path '/tree/*' -not -path '/proc/*' -not -path '/tmp/*' \
        -not -path '/root/*' -not -path '/var/log/*' -not -path '/var/lib/systemd/*' -not -path '/run/*' 2>/dev/null)" '' 'and so are all files'
}

show() { systemctl show -P "$1" "$2"; }
# shellcheck disable=SC2053 # a pattern
has_status() { [[ $(show StatusText "$1") == $2 ]]; }
restarted() { [ "$(show NRestarts "$1")" -ge 1 ]; }

jobs() {
    printf 'COMMAND=echo "$HOLDFAST_NAME $HOLDFAST_TOKEN" >>/tmp/ran\n' >/etc/holdfast/jobs/report
    quietly systemctl start holdfast-job@report
    is "$?:$(wc -l </tmp/ran)" 0:1 'holdfast-job@report runs its file'
    quietly systemctl start holdfast-job@report
    is "$?:$(wc -l </tmp/ran)" 0:1 'once a day'
    quietly holdfast once --history report && grep -q ' done ' /tmp/said
    ok $? "root's store has its history"
    quietly systemctl enable --now holdfast-job@report.timer
    is "$(systemctl is-active holdfast-job@report.timer)" active 'its timer is enabled'
    printf 'COMMAND=sleep 1000\nHOW=run --no-wait\n' >/etc/holdfast/jobs/busy
    systemctl start --no-block holdfast-job@busy
    within 20 holdfast status --held busy
    printf 'COMMAND=touch /tmp/beside\nHOW=run --no-wait\nLOCK=busy\n' >/etc/holdfast/jobs/other
    quietly systemctl start holdfast-job@other
    is "$?:$(find /tmp -name beside)" 0: 'another one that wants the lock does not run, and has not failed'
    quietly systemctl stop holdfast-job@busy
    is "$(show Result holdfast-job@busy)" success 'a job that is stopped has not failed'
    ! quietly systemctl start holdfast-job@missing
    ok $? 'a job without a file does not start'
    printf 'HOW=run --no-wait\n' >/etc/holdfast/jobs/idle
    ! quietly systemctl start holdfast-job@idle
    ok $? 'nor does one without a command'
    is "$(journalctl -u holdfast-job@idle | grep -c 'COMMAND.*is missing in /etc/holdfast/jobs/idle')" 1 'whose file is named'
    printf '%s\n' "COMMAND='\"printf\" \"<%s>\" \"a  b\" c >/tmp/words'" 'HOW=run --no-wait --label "this  one"' >/etc/holdfast/jobs/two-words
    quietly systemctl start holdfast-job@two-words
    is "$?:$(cat /tmp/words)" '0:<a  b><c>' 'a command that begins with a quote, and options with blanks; a dash in the name'
    mkdir -p /etc/systemd/system/holdfast-job@anyone.service.d
    printf '[Service]\nDynamicUser=yes\nStateDirectory=anyone\n' >/etc/systemd/system/holdfast-job@anyone.service.d/user.conf
    printf '%s\n' 'COMMAND=holdfast status --held anyone && id -u >"$STATE_DIRECTORY/who"' 'HOW=run --no-wait' >/etc/holdfast/jobs/anyone
    quietly systemctl daemon-reload
    quietly systemctl start holdfast-job@anyone
    is "$?:$(($(cat /var/lib/anyone/who) >= 61184))" 0:1 'a job of a user that systemd makes up'
}

secrets() {
    useradd --system worker
    mkdir -p /etc/systemd/system/holdfast-job@worker.service.d
    printf '[Service]\nUser=worker\nStateDirectory=worker\n' >/etc/systemd/system/holdfast-job@worker.service.d/user.conf
    echo hunter2 >/etc/holdfast/credentials/worker
    chmod 600 /etc/holdfast/credentials/worker
    printf 'COMMAND=cat "$CREDENTIALS_DIRECTORY/password" >/var/lib/worker/seen\nHOW=run --no-wait\n' >/etc/holdfast/jobs/worker
    quietly systemctl daemon-reload
    quietly systemctl start holdfast-job@worker
    is "$?:$(cat /var/lib/worker/seen)" 0:hunter2 'a job of another user, with a StateDirectory and a credential'
    is "$(stat -c %U /var/lib/worker/holdfast)" worker 'its store is in that directory'
    printf 'COMMAND=true\nHOW=run --no-wait\nHOLDFAST_STORE=redis://127.0.0.1:1?password_file=password\n' >/etc/holdfast/jobs/worker
    quietly systemctl start holdfast-job@worker
    is "$(show ExecMainStatus holdfast-job@worker)" 69 'a store finds its password there'
    printf 'COMMAND=cat "$CREDENTIALS_DIRECTORY/password" | wc -c >/tmp/none\nHOW=run --no-wait\n' >/etc/holdfast/jobs/none
    quietly systemctl start holdfast-job@none
    is "$?:$(cat /tmp/none)" 0:1 'a job without a credential starts all the same'
}

server() {
    local unit=holdfast-serve main
    is "$(systemctl is-enabled $unit.socket):$(systemctl is-active $unit.socket)" disabled:inactive 'the server is started by nobody but root'
    quietly systemctl start $unit.socket
    is "$?:$(stat -c %U:%a /run/holdfast/sock)" 0:root:660 'its socket is for root and the group'
    is "$(systemctl is-active $unit)" inactive 'and nothing runs yet'
    quietly holdfast --store http+unix:///run/holdfast/sock run -n served -- holdfast status --held served
    is "$?:$(systemctl is-active $unit)" 0:active 'the first client starts it'
    quietly holdfast run -n beside -- true
    ok $? 'in the same store as those who use it without a server'
    printf 'SERVE=--tokens /etc/holdfast/tokens\n' >/etc/holdfast/serve
    holdfast serve --new-token reader | tail -n 1 >/etc/holdfast/tokens
    chmod 600 /etc/holdfast/tokens
    quietly systemctl restart $unit
    quietly holdfast --store http+unix:///run/holdfast/sock run -n served -- true
    ok $? 'a file has its options'
    main=$(show MainPID $unit)
    quietly systemctl reload $unit
    within 20 sh -c "journalctl -u $unit | grep -q 'credentials were read again'"
    is "$?:$(show MainPID $unit)" "0:$main" 'reload reads the credentials again'
    kill -KILL "$main"
    within 20 restarted $unit
    quietly holdfast --store http+unix:///run/holdfast/sock run -n served -- true
    ok $? 'one that is killed is started again'
    quietly systemctl enable $unit.socket
    main=$(show MainPID $unit)
    # shellcheck disable=SC2046
    quietly dpkg -i $(debs /debs/next holdfast holdfast-serve)
    [ "$(show MainPID $unit)" != "$main" ] && holdfast --store http+unix:///run/holdfast/sock run -n served -- true
    ok $? 'an upgrade restarts it'
    quietly systemctl stop $unit.socket $unit
    is "$(show Result $unit)" success 'it stops well'
    quietly systemctl start $unit.socket
    quietly holdfast --store http+unix:///run/holdfast/sock run -n served -- true
    quietly dpkg --remove holdfast-serve
    is "$(systemctl is-active $unit.socket $unit)" $'inactive\ninactive' 'its removal ends it, and its socket'
    quietly dpkg --purge holdfast-serve
    is "$(find /etc/systemd -name "$unit*")" '' 'a purge leaves nothing enabled'
    # shellcheck disable=SC2046
    quietly dpkg -i $(debs /debs holdfast)
    rm -f /etc/holdfast/serve /etc/holdfast/tokens
}

leaders() {
    local unit=holdfast-leader@web before main
    printf 'COMMAND=exec sleep 1000\nHOW=--ttl 3s --grace 500ms\n' >/etc/holdfast/leaders/web
    mkdir -p /etc/systemd/system/$unit.service.d
    printf '[Service]\nWatchdogSec=2\nRestartSec=1\n' >/etc/systemd/system/$unit.service.d/soon.conf
    quietly systemctl daemon-reload
    quietly systemctl start $unit
    ok $? 'holdfast-leader@web is ready'
    within 20 has_status $unit 'leader of "web", term *'
    ok $? 'and its status tells that it leads'
    printf 'COMMAND=exec sleep 1000\nLOCK=web\n' >/etc/holdfast/leaders/second
    quietly systemctl start holdfast-leader@second
    before=$?
    within 20 has_status holdfast-leader@second 'standby for "web"'
    is "$before:$(show StatusText holdfast-leader@second)" '0:standby for "web"' 'another one is ready, and stands by'
    before=$(show MainPID $unit)
    # shellcheck disable=SC2046
    quietly dpkg -i $(debs /debs/next holdfast)
    is "$?:$(show MainPID $unit)" "0:$before" 'an upgrade leaves the leader alone'
    is "$(show NeedDaemonReload $unit)" no 'and systemd has read its unit again'
    sleep 5
    is "$(show NRestarts $unit):$(systemctl is-active $unit)" 0:active 'its watchdog is answered'
    main=$(show MainPID $unit)
    kill -STOP "$main"
    within 30 restarted $unit
    ok $? 'one that is stopped is restarted by the watchdog'
    is "$(ps -o pid= -p "$main" 2>/dev/null)" '' 'its processes are gone'
    within 20 has_status holdfast-leader@second 'leader of "web", term *'
    ok $? 'and the other one leads'
    quietly systemctl stop holdfast-leader@second $unit
    is "$(show Result holdfast-leader@second)" success 'a leader that is stopped has not failed'
    # shellcheck disable=SC2046
    quietly dpkg -i $(debs /debs holdfast)
    # What an administrator made is theirs to remove.
    quietly systemctl disable --now holdfast-job@report.timer
    rm -rf /etc/holdfast/*/* /etc/systemd/system/holdfast-* /var/lib/worker /var/lib/anyone /var/lib/private/anyone
}

install_them
programs
served
if booted; then
    jobs
    secrets
    server
    leaders
else
    echo '# systemd is not booted here: not tried are the units'
fi
upgrade
remove
echo 'ok - to the end'
