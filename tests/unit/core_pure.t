#!/bin/sh
# core_pure.t - src/core decides and does nothing else: no system call, no clock, no memory, no
# thread. Its objects may need each other and a short list of functions that cannot do any of that.
# run: once
set -u
cd "$(dirname "$0")/../.." || exit 1
objects=build/obj/src/core
# The last ones are of src/base, and only compute.
allowed='memcpy memmove memset memcmp memchr strlen strcmp strncmp strspn strcspn __assert_fail __stack_chk_fail _GLOBAL_OFFSET_TABLE_
    hf__hash64 hf__hex_encode hf__parse_u64 hf__parse_duration_ms hf__url_redact hf__copy_printable
    hf__backoff_failed hf__backoff_worked'

count=$(find "$objects" -name '*.o' 2>/dev/null | wc -l)
sources=$(find src/core -name '*.c' | wc -l)
echo 1..2
if [ "$count" -ge "$sources" ] && [ "$sources" -gt 0 ]; then
    echo "ok 1 - all $sources sources of src/core are built"
else
    echo "not ok 1 - $count objects in $objects for $sources sources"
fi

# What one object defines another may use.
defined=$(nm --defined-only -j "$objects"/*.o | sed '/^$/d; /:$/d')
foreign=
for symbol in $(nm --undefined-only -j "$objects"/*.o | sed '/^$/d; /:$/d' | sort -u); do
    case " $(echo "$allowed" | tr '\n' ' ') $(echo "$defined" | tr '\n' ' ') " in
    *" $symbol "*) ;;
    *) foreign="$foreign $symbol" ;;
    esac
done
if [ -z "$foreign" ]; then
    echo "ok 2 - src/core calls nothing outside"
else
    echo "not ok 2 - src/core calls:$foreign"
fi
