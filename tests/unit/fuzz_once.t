#!/bin/bash
# What `once` reads: its records, and files of the time zone database. Any bytes may be in them.
# run: once
# run: also long
set -u
. "$(dirname "$0")/../fuzz/fuzz.sh"

fuzz_build "$root/tests/fuzz/fuzz_once.c" "$root"/src/core/{once,schedule,zone,civil}.c "$root"/src/base/text.c

seed success <<'END'
holdfast-once 1
state done
per 86400000
at 03:00
tz Europe/Berlin
by web1/4711/report.sh
token 1763347200000001
since 1763347200123
took 4000
exit 0
attempts 1
failures 0
note because
output 6

hello
END
seed failed < <(sed 's/done/failed/; s/failures 0/failures 2/' "$dir/corpus/success")
seed berlin </usr/share/zoneinfo/Europe/Berlin
seed samoa </usr/share/zoneinfo/Pacific/Apia
seed rule < <(printf 'TZif2%039d' 0 | tr 0 '\0'; printf '\nEST5EDT,M3.2.0,M11.1.0\n')
FUZZ_RUNS=${FUZZ_RUNS:-100000} fuzz_run 4096 'no record and no zone breaks what reads it'

done_testing
