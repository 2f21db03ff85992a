#!/bin/bash
# Every finding of `holdfast doctor` has a test that sets something up to deserve it, and one that does not.
set -u
. "$(dirname "$0")/cmd.sh"

from=$root/tests
# words FUNCTION : the rules that the tests of doctor call it with
words() {
    cat "$from"/*/doctor.t "$from/redis/sentinel.t" | sed -e ':a' -e '/\\$/N; s/\\\n//; ta' |
        sed -n "s/^.*\\b$1 \\(\\([a-z]*\\.[a-z-]* *\\)*\\).*/\\1/p" | tr -s ' ' '\n' | sort -u
}
rules=$(sed -n 's/^    {"\([a-z]*\.[a-z-]*\)", "[a-z]*\..*/\1/p' "$root"/src/core/audit_*.c | sort)
check 'there are rules' test "$(wc -l <<<"$rules")" -gt 60
is "$(comm -23 <(echo "$rules") <({ words finds; words unchecked; } | sort))" '' 'each finding is found somewhere'
is "$(comm -23 <(echo "$rules") <(words spares))" '' 'each is spared somewhere'
done_testing
