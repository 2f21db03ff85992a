#!/bin/bash
# twice.t - two attempts of one owner, as the functions in the database tell them apart.
set -u
. "$(dirname "$0")/lib.sh"

pg_start a
client c "$(url a)"

# asks ATTEMPT [CHANNEL [NAME [OWNER]]] : the verdict; a channel of NULL does not queue
asks() {
    sql a "SELECT verdict FROM holdfast.acquire('${3-job}', '${4-one}', 20000, '', true,
        (SELECT id FROM holdfast.met), ${2-NULL}, 1000, $1)"
}
leaves() { sql a "SELECT holdfast.leave('job', '${2-one}', (SELECT id FROM holdfast.met), 1000, $1)"; }
frees() { sql a "SELECT holdfast.release('job', '$1', 0, (SELECT id FROM holdfast.met), 1000)"; }
holder() { sql a "SELECT coalesce(encode(owner, 'escape'), '-') || CASE WHEN handed THEN ' next' ELSE '' END
    FROM holdfast.lock WHERE name = '${1-job}'"; }
place() { sql a "SELECT count(*) FROM holdfast.waiter WHERE owner = 'one'"; }

# of one who holds
is "$(asks 7)" granted 'an attempt'
is "$(asks 7)" granted 'asks again'
is "$(asks 8)" twice 'another one of the same owner is told so'
is "$(asks 8 "''")" twice 'and does not queue'
is "$(leaves 8)" left 'and leaves'
is "$(holder)" one 'the first one holds the lock'
is "$(leaves 7)" left 'until it leaves'
is "$(holder)" - 'itself'

# of one who waits
is "$(asks 0 NULL job two)" granted 'somebody else'
is "$(asks 7 "''")" busy 'an attempt waits'
is "$(asks 8 "''")" busy 'and another one in the same place'
is "$(leaves 9)" left 'one that never asked leaves'
is "$(leaves 8)" left 'one that did as well'
is "$(place)" 1 'the place is that of the first'
is "$(asks 0 "''" job three)" busy 'behind which others stand'
is "$(asks 7 "''")" busy 'which asks on'
is "$(leaves 7)" left 'and leaves'
is "$(place)" 0 'an empty place'

# handed to both, confirmed by one
leaves 0 three >"$dir/sql"
asks 7 "''" >"$dir/sql"
asks 8 "''" >"$dir/sql"
frees two >"$dir/sql"
is "$(holder)" 'one next' 'a lock is handed to both'
is "$(leaves 8)" left 'and one goes away'
is "$(holder)" 'one next' 'it stays where it is'
is "$(asks 7 "''")" granted 'for the other'
is "$(asks 8 "''")" twice 'and only for that'
is "$(leaves 7)" left 'which leaves'
is "$(holder)" - 'it to nobody'

# one of several
any() {
    sql a "SELECT verdict || ' ' || which FROM holdfast.acquire_any(ARRAY['job', 'other']::bytea[],
        ARRAY['one', 'two']::bytea[], 20000, '', true, (SELECT id FROM holdfast.met), NULL, 1000, 0, $1)"
}
is "$(asks 0 NULL job three)" granted 'one of two is held'
is "$(any 7)" 'granted 2' 'the other is taken'
frees three >"$dir/sql"
is "$(any 8)" 'twice 2' 'once'
sql a "SELECT holdfast.leave_any(ARRAY['job', 'other']::bytea[], ARRAY['one', 'two']::bytea[],
    (SELECT id FROM holdfast.met), 1000, 8)" >"$dir/sql"
is "$(holder other)" two 'whoever else leaves'
is "$(holder)" - 'and nothing else is'

# A client of the version before numbers nothing; it is in when the schema changes.
sql a 'ALTER TABLE holdfast.lock DROP COLUMN attempt' 'ALTER TABLE holdfast.waiter DROP COLUMN attempts' \
    'UPDATE holdfast.version SET version = 19'
client n "$(url a)"
is "$(holder other)" two 'a schema of the version before is brought up to date with what is held'
is "$(asks 7 NULL other two)" twice 'which is nobody else'\''s'
is "$(sql a "SELECT verdict FROM holdfast.acquire('old', 'old', 20000, '', true,
    (SELECT id FROM holdfast.met), NULL, 1000)")" granted 'who numbers nothing is granted a lock'
is "$(sql a "SELECT holdfast.leave('old', 'old', (SELECT id FROM holdfast.met), 1000)")" left 'and leaves'
is "$(holder old)" - 'it'

# By clients: commits take so long that whoever goes away does so before its answer comes.
pg_fsync=on pg_start slow commit_delay=100000 commit_siblings=0
export CONFORM_ONLY=a_claim_sent_twice_that_nobody_waits_for
conforms "$(url slow)" 'an attempt that is undone unheard ends no hold of another'
done_testing
