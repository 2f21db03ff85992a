# fish completion for holdfast

function __holdfast_locks
    set -l store
    set -l words (commandline -opc)
    for i in (seq (count $words))
        if test "$words[$i]" = --store; and set -q words[(math $i + 1)]
            set store --store $words[(math $i + 1)]
        end
    end
    timeout 2 holdfast $store list --names 2>/dev/null | head -n 500
end

function __holdfast_no_command
    not __fish_seen_subcommand_from run once elect leader acquire keep renew release status list slots explain break doctor repair fence idem outbox serve trap torture odds help version
end

function __holdfast_is
    __fish_seen_subcommand_from $argv
end

set -l durations '1s 10s 30s 1m 5m 1h'
set -l stores 'file: redis:// rediss:// redis+unix:// redis+sentinel:// redlock:// etcd:// zookeeper:// postgres:// http:// https:// http+unix://'

complete -c holdfast -f
complete -c holdfast -n __holdfast_no_command -l store -x -a $stores -d 'where the locks live'
complete -c holdfast -s h -l help -d 'show help'
complete -c holdfast -n __holdfast_no_command -s V -l version -d 'print the version'

complete -c holdfast -n __holdfast_no_command -a run -d 'run a command while holding a lock'
complete -c holdfast -n __holdfast_no_command -a once -d 'run a command until it has succeeded once, or once per period'
complete -c holdfast -n __holdfast_no_command -a elect -d 'run a command on one machine of several, its leader'
complete -c holdfast -n __holdfast_no_command -a leader -d 'show who leads, and where to find it'
complete -c holdfast -n __holdfast_no_command -a acquire -d 'take a lock and print what renews and releases it'
complete -c holdfast -n __holdfast_no_command -a keep -d 'take a lock for a script and renew it until the script ends'
complete -c holdfast -n __holdfast_no_command -a renew -d 'extend a lease taken with acquire'
complete -c holdfast -n __holdfast_no_command -a release -d 'give back a lock taken with acquire'
complete -c holdfast -n __holdfast_no_command -a status -d 'show one lock, or the store as a whole'
complete -c holdfast -n __holdfast_no_command -a list -d 'list the locks that are held or waited for'
complete -c holdfast -n __holdfast_no_command -a slots -d 'show who has which slot of several, and who waits'
complete -c holdfast -n __holdfast_no_command -a explain -d 'tell the story of one lock, and what happens next'
complete -c holdfast -n __holdfast_no_command -a break -d 'revoke a hold: its job is ended, then the lock passes on'
complete -c holdfast -n __holdfast_no_command -a doctor -d 'tell which kind of lock this store is fit for'
complete -c holdfast -n __holdfast_no_command -a repair -d 'make a damaged store usable again, or end a quarantine'
complete -c holdfast -n __holdfast_no_command -a fence -d 'make a resource refuse a stale token'
complete -c holdfast -n __holdfast_no_command -a idem -d 'make a retry harmless: idempotency keys in SQL'
complete -c holdfast -n __holdfast_no_command -a outbox -d 'send messages that were written in a transaction'
complete -c holdfast -n __holdfast_no_command -a serve -d 'serve a store over HTTP, with a page and metrics'
complete -c holdfast -n __holdfast_no_command -a trap -d 'show on your own store why a lock alone is not enough'
complete -c holdfast -n __holdfast_no_command -a torture -d 'find out whether your own store keeps what a lock promises'
complete -c holdfast -n __holdfast_no_command -a odds -d 'tell how often a lease of this ttl will be violated'
complete -c holdfast -n __holdfast_no_command -a help -d 'explain holdfast, one of its commands, or the stores'
complete -c holdfast -n __holdfast_no_command -a version -d 'print the version'

complete -c holdfast -n '__holdfast_is run once elect leader acquire keep renew release status list slots explain break' -a '(__holdfast_locks)' -d lock
complete -c holdfast -n '__holdfast_is help' -a 'run once elect leader acquire keep renew release status list slots explain break doctor repair fence idem outbox serve trap torture odds help version stores'

complete -c holdfast -n '__holdfast_is run once acquire keep outbox' -s n -l no-wait -d 'fail at once if another holds the lock or the store is down'
complete -c holdfast -n '__holdfast_is run once acquire keep outbox' -s w -l wait -x -a $durations -d 'wait at most this long'
complete -c holdfast -n '__holdfast_is run once acquire keep outbox' -s E -l busy-exit -x -d 'exit code if another holds the lock'
complete -c holdfast -n '__holdfast_is run once elect acquire keep outbox' -l label -x -d 'what others see as the holder'
complete -c holdfast -n '__holdfast_is run once elect acquire keep renew doctor outbox' -l ttl -x -a $durations -d 'how long the lease lasts unless renewed'
complete -c holdfast -n '__holdfast_is once leader acquire status list slots doctor fence outbox version' -l json -d 'print JSON'
complete -c holdfast -n '__holdfast_is run elect acquire' -l all -d 'take all of the locks named'
complete -c holdfast -n '__holdfast_is run elect acquire' -l any -d 'take one of the locks named'
complete -c holdfast -n '__holdfast_is run elect acquire' -l slots -x -d 'take one of this many slots'
complete -c holdfast -n '__holdfast_is run elect acquire' -l slot -x -d 'this slot, and no other'
complete -c holdfast -n '__holdfast_is list' -l flat -d 'a line for each slot'
complete -c holdfast -n '__holdfast_is list' -l names -d 'print the names only'
complete -c holdfast -n '__holdfast_is status' -l held -d 'exit 1 if the lock is free'
complete -c holdfast -n '__holdfast_is status' -l free -d 'exit 1 if the lock is held'
complete -c holdfast -n '__holdfast_is break' -l token -x -d 'the hold to break'
complete -c holdfast -n '__holdfast_is break' -l reason -x -d 'why'
complete -c holdfast -n '__holdfast_is break' -l now -d 'end the hold at once'
complete -c holdfast -n '__holdfast_is break' -l yes -d 'do not ask'
complete -c holdfast -n '__holdfast_is doctor' -l for -x -a 'efficiency correctness' -d 'what the lock is for'
complete -c holdfast -n '__holdfast_is run once elect acquire' -l require -x -a 'correctness nothing' -d 'refuse unless the store is fit for it'
complete -c holdfast -n '__holdfast_is run once elect acquire doctor' -l fence -r -F -d 'what the job writes to'
complete -c holdfast -n '__holdfast_is run once elect acquire doctor' -l db -x -a 'postgres:// mariadb:// sqlite:' -d 'the database of fenced tables'
complete -c holdfast -n '__holdfast_is repair' -l above -x -d 'let new tokens start above this one'
complete -c holdfast -n '__holdfast_is repair' -l open -d 'end the quarantine'
complete -c holdfast -n '__holdfast_is repair' -l reason -x -d 'how you know that nobody holds anything'

complete -c holdfast -n '__holdfast_is keep' -s p -l pid -x -a '(__fish_complete_pids)' -d 'the script to keep the lock for'
complete -c holdfast -n '__holdfast_is run once elect keep doctor' -l grace -x -a $durations -d 'time between TERM and KILL'
complete -c holdfast -n '__holdfast_is run once keep' -l on-loss -x -a 'term kill warn' -d 'what happens when the lock is lost'
complete -c holdfast -n '__holdfast_is run once' -l max-runtime -x -a $durations -d 'end the command after this time'
complete -c holdfast -n '__holdfast_is run once' -l skip-ok -d 'exit 0 if another holds the lock'
complete -c holdfast -n '__holdfast_is run once' -l leftover -x -a 'wait term release' -d 'what happens to processes left behind'
complete -c holdfast -n '__holdfast_is run once elect outbox' -l events -r -F -d 'a line of JSON for each event'
complete -c holdfast -n '__holdfast_is run once elect outbox' -l metrics -r -F -d 'figures for Prometheus'
complete -c holdfast -n '__holdfast_is run' -l at-least -x -a $durations -d 'do not start again within this time after a start'
complete -c holdfast -n '__holdfast_is run' -l no-reenter -d 'refuse a lock that this tree holds'

function __holdfast_zones
    echo UTC
    path sort -- /usr/share/zoneinfo/[A-Z]*/* 2>/dev/null | string replace /usr/share/zoneinfo/ ''
end
complete -c holdfast -n '__holdfast_is elect' -l restart -x -a 'always on-failure no' -d 'when to stand again'
complete -c holdfast -n '__holdfast_is elect' -l address -x -d 'where the leader can be found'
complete -c holdfast -n '__holdfast_is elect' -l on-loss -x -a 'term kill' -d 'what happens when the lock is lost'
complete -c holdfast -n '__holdfast_is elect' -l leftover -x -a 'wait term' -d 'what happens to processes left behind'
complete -c holdfast -n '__holdfast_is leader' -l watch -d 'keep going, and print each change'
complete -c holdfast -n '__holdfast_is once' -l per -x -a '10m 1h 6h 12h 1d 7d' -d 'once in each'
complete -c holdfast -n '__holdfast_is once' -l at -x -a '00:00 03:00' -d 'when a period of whole days begins'
complete -c holdfast -n '__holdfast_is once' -l tz -x -a '(__holdfast_zones)' -d 'the time zone of --at'
complete -c holdfast -n '__holdfast_is once' -l slack -x -a $durations -d 'how long before a period it is already meant'
complete -c holdfast -n '__holdfast_is once' -l start-by -x -a $durations -d 'do not start later than this'
complete -c holdfast -n '__holdfast_is once' -l retries -x -d 'run the command again if it fails'
complete -c holdfast -n '__holdfast_is once' -l retry-after -x -a $durations -d 'wait this long before that'
complete -c holdfast -n '__holdfast_is once' -l on-crash -x -a 'rerun hold' -d 'if a run began and never ended'
complete -c holdfast -n '__holdfast_is once' -l keep -x -a '7d 30d 365d' -d 'keep the outcome this long'
complete -c holdfast -n '__holdfast_is once' -l output -d 'keep what the command writes with the outcome'
complete -c holdfast -n '__holdfast_is once' -l done-exit -x -d 'exit code if it is already done'
complete -c holdfast -n '__holdfast_is once' -l show -d 'show the last slot'
complete -c holdfast -n '__holdfast_is once' -l history -d 'show all slots'
complete -c holdfast -n '__holdfast_is once' -l check -d 'exit 0 if the last slot that is due is done'
complete -c holdfast -n '__holdfast_is once' -l late -x -a $durations -d 'how long after it began a slot has to be done'
complete -c holdfast -n '__holdfast_is once' -l clear -d 'let a slot be run again'
complete -c holdfast -n '__holdfast_is once' -l reason -x -d 'why'
complete -c holdfast -n '__holdfast_is once' -l slot -x -d 'which one'

set -l fences sql set del script write append enter reset show check
complete -c holdfast -n "__holdfast_is fence; and not __fish_seen_subcommand_from $fences" -a "$fences"
complete -c holdfast -n "__holdfast_is fence; and __fish_seen_subcommand_from $fences" -F
complete -c holdfast -n '__holdfast_is fence' -s t -l token -x -d 'the fencing token'
complete -c holdfast -n '__holdfast_is fence' -l lock -x -d 'the token of this lock'
complete -c holdfast -n '__holdfast_is fence' -l issuer -x -d 'issuer of the tokens'
complete -c holdfast -n '__holdfast_is fence' -s w -l wait -x -a $durations -d 'how long to wait for another writer'
complete -c holdfast -n '__holdfast_is fence' -l ttl -x -a $durations -d 'the key expires after it'
complete -c holdfast -n '__holdfast_is fence' -l reason -x -d 'why a fence is reset'
complete -c holdfast -n '__holdfast_is fence' -s d -l dialect -x -a 'postgres sqlite mariadb' -d 'of SQL'
complete -c holdfast -n '__holdfast_is fence' -l db -x -d 'the database to check'
complete -c holdfast -n '__holdfast_is fence' -l table -x -d 'the table to fence'
complete -c holdfast -n '__holdfast_is fence' -l schema -x -d 'its schema'
complete -c holdfast -n '__holdfast_is fence' -l resource -x -d 'its name in enter'
complete -c holdfast -n '__holdfast_is fence' -l key-column -x -d 'one lock per value of a column'
complete -c holdfast -n '__holdfast_is fence' -l no-transaction -d 'leave out BEGIN and COMMIT'
complete -c holdfast -n '__holdfast_is fence' -l statements -x -a 'text json' -d 'how it is printed'
complete -c holdfast -n '__holdfast_is fence' -l per-row -d 'guard UPDATE only, by a column'
complete -c holdfast -n '__holdfast_is fence' -l down -d 'print the reverse'
complete -c holdfast -n '__holdfast_is fence' -l last -d 'remove what fenced tables share, too'
complete -c holdfast -n '__holdfast_is idem; and not __fish_seen_subcommand_from sql' -a sql
complete -c holdfast -n '__holdfast_is idem' -s d -l dialect -x -a 'postgres sqlite mariadb' -d 'of SQL'
complete -c holdfast -n '__holdfast_is idem' -l schema -x -d 'the schema'
complete -c holdfast -n '__holdfast_is idem' -l keep -x -a $durations -d 'how long purge keeps keys'
complete -c holdfast -n '__holdfast_is idem' -l down -d 'print the reverse'
complete -c holdfast -n '__holdfast_is idem' -l no-transaction -d 'leave out BEGIN and COMMIT'
complete -c holdfast -n '__holdfast_is idem' -l statements -x -a 'text json' -d 'as a text, or a list'
set -l outboxes sql relay list retry drop
complete -c holdfast -n "__holdfast_is outbox; and not __fish_seen_subcommand_from $outboxes" -a "$outboxes"
complete -c holdfast -n '__holdfast_is outbox' -s d -l dialect -x -a 'postgres sqlite mariadb' -d 'of SQL'
complete -c holdfast -n '__holdfast_is outbox' -l down -d 'print the reverse'
complete -c holdfast -n '__holdfast_is outbox' -l no-transaction -d 'leave out BEGIN and COMMIT'
complete -c holdfast -n '__holdfast_is outbox' -l statements -x -a 'text json' -d 'as a text, or a list'
complete -c holdfast -n '__holdfast_is outbox' -l schema -x -d 'the schema'
complete -c holdfast -n '__holdfast_is outbox' -l db -x -a 'postgres:// mariadb:// sqlite:' -d 'the database'
complete -c holdfast -n '__holdfast_is outbox' -l name -x -d 'the lock of the relay is outbox/NAME'
complete -c holdfast -n '__holdfast_is outbox' -l http -x -a 'http:// https://' -d 'where messages are posted'
complete -c holdfast -n '__holdfast_is outbox' -l parallel -x -d 'keys at once'
complete -c holdfast -n '__holdfast_is outbox' -l batch -x -d 'messages per fetch'
complete -c holdfast -n '__holdfast_is outbox' -l poll -x -a $durations -d 'how often to look for new messages'
complete -c holdfast -n '__holdfast_is outbox' -l timeout -x -a $durations -d 'for one answer'
complete -c holdfast -n '__holdfast_is outbox' -l attempts -x -d 'a message is dead after this many'
complete -c holdfast -n '__holdfast_is outbox' -l reason -x -d 'why it is retried or dropped'
complete -c holdfast -n '__holdfast_is serve' -l store -x -a $stores -d 'the store to serve'
complete -c holdfast -n '__holdfast_is serve' -l listen -x -a 'unix: tcp:127.0.0.1:7070 tcp:[::1]:7070' -d 'where to listen'
complete -c holdfast -n '__holdfast_is serve' -l tokens -r -F -d 'who may do what'
complete -c holdfast -n '__holdfast_is serve' -l new-token -x -d 'print a new secret and its line'
complete -c holdfast -n '__holdfast_is serve' -l host -x -d 'another name of this server'
complete -c holdfast -n '__holdfast_is serve' -l max-clients -x -d 'connections at a time'
complete -c holdfast -n '__holdfast_is serve' -l max-waiters -x -d 'requests that wait for locks'
complete -c holdfast -n '__holdfast_is serve' -l max-ttl -x -a $durations -d 'the longest ttl'
complete -c holdfast -n '__holdfast_is serve' -l max-wait -x -a $durations -d 'the longest wait'
complete -c holdfast -n '__holdfast_is serve' -l watch -x -d 'a lock to report in the metrics'
complete -c holdfast -n '__holdfast_is trap' -l store -x -a $stores -d 'the store to try it on'
complete -c holdfast -n '__holdfast_is trap' -l ttl -x -a $durations -d 'of the leases'
complete -c holdfast -n '__holdfast_is trap' -l svg -r -F -d 'draw it'
complete -c holdfast -n '__holdfast_is explain' -l watch -d 'keep going, and tell it again each time something changes'
complete -c holdfast -n '__holdfast_is explain' -l json -d 'print JSON'
complete -c holdfast -n '__holdfast_is torture' -l for -x -a $durations -d 'how long'
complete -c holdfast -n '__holdfast_is torture' -l freeze -d 'freeze holders for longer than their ttl'
complete -c holdfast -n '__holdfast_is torture' -l kill -d 'kill workers'
complete -c holdfast -n '__holdfast_is torture' -l cut -d 'cut holders off from the store'
complete -c holdfast -n '__holdfast_is torture' -l ttl -x -a $durations -d 'of the leases'
complete -c holdfast -n '__holdfast_is torture' -l workers -x -d 'how many'
complete -c holdfast -n '__holdfast_is torture' -l seed -x -d 'of what happens to whom'
complete -c holdfast -n '__holdfast_is torture' -l svg -r -F -d 'draw it'
complete -c holdfast -n '__holdfast_is torture' -l json -d 'print JSON'
complete -c holdfast -n '__holdfast_is odds' -l ttl -x -a $durations -d 'how long the lease lasts'
complete -c holdfast -n '__holdfast_is odds' -l pause -x -a '1e-4 0.01% 1/10000' -d 'operations paused for longer than that'
complete -c holdfast -n '__holdfast_is odds' -l rate -x -a '10000/s 100/m 10/h' -d 'operations'
complete -c holdfast -n '__holdfast_is odds' -l tail -x -a '1 1.5 2' -d 'how fast longer pauses get rarer'
complete -c holdfast -n '__holdfast_is odds' -l seed -x -d 'of the simulation'
complete -c holdfast -n '__holdfast_is odds' -l svg -r -F -d 'draw it'
complete -c holdfast -n '__holdfast_is odds' -l json -d 'print JSON'
