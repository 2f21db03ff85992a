#!/bin/bash
# The examples are true: systemd accepts the units, and holdfast every command line in them.
# run: once
set -u
. "$(dirname "$0")/lib.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)

if command -v systemd-analyze >/dev/null; then
    mkdir "$dir/units"
    # The program need not be installed where the example has it.
    for unit in "$root"/examples/*.service "$root"/examples/*.timer; do
        sed "s|/usr/local/bin/holdfast|$hf|" "$unit" >"$dir/units/${unit##*/}"
    done
    for unit in "$dir"/units/*; do
        run env SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$unit"
        is "$rc" 0 "systemd-analyze verify ${unit##*/}"
        # What is wrong with other units of this machine is not ours.
        is "$(grep -F "${unit##*/}" "$dir/err" || true)" '' "${unit##*/}: nothing is said about it"
    done
    calendar=$(sed -n 's/^OnCalendar=//p' "$root/examples/holdfast-report.timer")
    run systemd-analyze calendar "$calendar"
    is "$rc" 0 'systemd understands the time'
else
    skip 5 'systemd-analyze is not installed'
fi

# words FILE : the command lines of a file, one per line, from holdfast on
words() { sed -n 's/^ExecStart=//p; s/^[0-9*][^#]*  \(.*\)/\1/p' "$1" | sed 's/ || true$//; s|^/usr/local/bin/holdfast ||'; }
count=0
for file in "$root"/examples/crontab "$root"/examples/*.service; do
    while IFS= read -r line; do
        count=$((count + 1))
        # With a job that is here, in a store that is here.
        line=${line/\/usr\/local\/bin\/report.sh/true}
        line=${line/\/usr\/local\/bin\/sync.sh/true}
        # shellcheck disable=SC2086
        run "$hf" $line
        [ "$rc" -eq 0 ]
        ok $? "${file##*/}: holdfast $line"
        [ "$rc" -eq 0 ] || diag "$err"
    done < <(words "$file")
done
[ "$count" -eq 4 ]
ok $? "there are command lines ($count)"
is "$(awk '/^[0-9*]/ && NF < 6' "$root/examples/crontab")" '' 'lines of crontab have five fields and a command'

yaml=$(python3 - "$root/examples/cronjob.yaml" <<'END'
import re, sys
text = open(sys.argv[1]).read()
try:
    import yaml
    job = yaml.safe_load(text)
    command = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["command"]
except ImportError:
    block = text.split("command:\n", 1)[1].split("env:", 1)[0]
    command = re.findall(r"^ +- (.*)$", block, re.M)
print("\n".join(command))
END
)
mapfile -t command <<<"${yaml/\/usr\/local\/bin\/report.sh/true}"
run "$hf" "${command[@]:1}"
is "$rc" 0 'cronjob.yaml: its command'

# What the pages show can be pasted: with another job, and a term that ends.
holdfast() { "$hf" "$@"; }
export hf
export -f holdfast
count=0
for page in docs/cron.md docs/elect.md man/holdfast-once.1 man/holdfast-elect.1 man/holdfast-leader.1; do
    while IFS= read -r line; do
        count=$((count + 1))
        case $line in *' -- '*) line="${line%% -- *} -- true" ;; esac
        run bash -c "${line/elect /elect --restart no }"
        case $rc:$line in
        0:* | 1:*--check* | 1:*leader*) ok 0 "${page##*/}: $line" ;;
        *) is "$rc" 0 "${page##*/}: $line" ;;
        esac
    done < <(sed 's/[\]//g' "$root/$page" |
        sed -nE 's/^ *(\$ |0 3 \* \* \*  )?(holdfast (once|elect|leader) .* .*)/\2/p')
done
[ "$count" -ge 11 ]
ok $? "the pages have command lines ($count)"
run "$hf" once --history report
is "$(head -n 1 <<<"$out")" "$(grep '^SLOT ' "$root/docs/cron.md")" 'a history looks as docs/cron.md shows it'
done_testing
