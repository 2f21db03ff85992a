#!/bin/bash
# break.t - a hold in the embedded store is broken: alive and frozen.
# shellcheck disable=SC2317 # what stage.sh calls at the end
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$(dirname "$0")/../support/break.sh"
server_stop() { :; }

url=file:$dir/store
break_alive "$url" 3000
break_frozen "$url" 1500
break_run "$url" 6s
break_now "$url" 3000
break_twice "$url" 20000

# By whom and why stands in a file of its own; without that, the hold is broken all the same.
client c "$url"
ask c acquire 0 seen 20000 0 free
token=$(token)
ask c break seen "$token"
is "$(find "$dir/store/broken" -type f | wc -l)" 7 'a file for each hold that was broken'
find "$dir/store/broken" -type f -delete
ask c renew 0 20000
like "$answer" 'HF_LOST*was broken' 'what became of it does not matter'
answer=$("$hf" --store "$url" status seen)
like "$answer" '*broken *by somebody*' 'status says what it knows'
ask c release 0
# Files of holds that are long over go with the next break.
ask c acquire 0 seen 20000 0 free
ask c break seen "$(token)"
touch -d '2 days ago' "$dir/store/broken"/*
ask c release 0
ask c acquire 0 other 20000 0 free
ask c break other "$(token)"
is "$(find "$dir/store/broken" -type f | wc -l)" 1 'the next break removes what is old'
ask c renew 0 20000
like "$answer" 'HF_LOST*was broken by breaker: a test' 'and not its own'
ask c release 0
done_testing
