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
    not __fish_seen_subcommand_from run acquire renew release status list repair help version
end

function __holdfast_is
    __fish_seen_subcommand_from $argv
end

set -l durations '1s 10s 30s 1m 5m 1h'

complete -c holdfast -f
complete -c holdfast -n __holdfast_no_command -l store -x -a 'file:' -d 'where the locks live'
complete -c holdfast -s h -l help -d 'show help'
complete -c holdfast -n __holdfast_no_command -s V -l version -d 'print the version'

complete -c holdfast -n __holdfast_no_command -a run -d 'run a command while holding a lock'
complete -c holdfast -n __holdfast_no_command -a acquire -d 'take a lock and print what renews and releases it'
complete -c holdfast -n __holdfast_no_command -a renew -d 'extend a lease that acquire took'
complete -c holdfast -n __holdfast_no_command -a release -d 'give back a lock that acquire took'
complete -c holdfast -n __holdfast_no_command -a status -d 'show one lock, or the store as a whole'
complete -c holdfast -n __holdfast_no_command -a list -d 'list the locks that are held or waited for'
complete -c holdfast -n __holdfast_no_command -a repair -d 'make a damaged embedded store usable again'
complete -c holdfast -n __holdfast_no_command -a help -d 'explain holdfast or one of its commands'
complete -c holdfast -n __holdfast_no_command -a version -d 'print the version'

complete -c holdfast -n '__holdfast_is run acquire renew release status list' -a '(__holdfast_locks)' -d lock
complete -c holdfast -n '__holdfast_is help' -a 'run acquire renew release status list repair help version'

complete -c holdfast -n '__holdfast_is run acquire' -s n -l no-wait -d 'fail at once if another holds the lock'
complete -c holdfast -n '__holdfast_is run acquire' -s w -l wait -x -a $durations -d 'wait so long for the lock'
complete -c holdfast -n '__holdfast_is run acquire' -s E -l busy-exit -x -d 'exit code if another holds the lock'
complete -c holdfast -n '__holdfast_is run acquire' -l label -x -d 'what others see as the holder'
complete -c holdfast -n '__holdfast_is run acquire renew' -l ttl -x -a $durations -d 'how long the lease lasts unless renewed'
complete -c holdfast -n '__holdfast_is acquire status list version' -l json -d 'print JSON'
complete -c holdfast -n '__holdfast_is list' -l names -d 'print the names only'
complete -c holdfast -n '__holdfast_is repair' -l above -x -d 'let new tokens start above this one'

complete -c holdfast -n '__holdfast_is run' -l grace -x -a $durations -d 'time between TERM and KILL'
complete -c holdfast -n '__holdfast_is run' -l on-loss -x -a 'term kill warn' -d 'what happens when the lock is lost'
complete -c holdfast -n '__holdfast_is run' -l max-runtime -x -a $durations -d 'end the command after this time'
complete -c holdfast -n '__holdfast_is run' -l skip-ok -d 'exit 0 if another holds the lock'
complete -c holdfast -n '__holdfast_is run' -l leftover -x -a 'wait term release' -d 'what happens to processes left behind'
complete -c holdfast -n '__holdfast_is run' -l no-reenter -d 'refuse a lock that this tree holds'
