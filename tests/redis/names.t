#!/bin/bash
# names.t - names with several addresses: one that swallows everything is passed over.
set -u
. "$(dirname "$0")/../support/cables.sh"
cables_enter "$0" "$@"
. "$(dirname "$0")/lib.sh"

far_redis far 4

# A name with two addresses, the first of which swallows everything.
black_hole 4
name_addresses two.holdfast.test 10.9.4.3 10.9.4.2
is "$(getent ahostsv4 two.holdfast.test | awk '/STREAM/ { print $1 }' | tr '\n' ' ')" '10.9.4.3 10.9.4.2 ' \
    'the black hole comes first'
client c "redis://two.holdfast.test:$(port far)"
is "$answer" ok 'it is passed over'
ask c acquire 1 x 10000 0
like "$answer" 'ok *' 'and a lock taken'
ask c release 1
name_addresses none.holdfast.test 10.9.4.3
client d "redis://none.holdfast.test:$(port far)"
like "$answer" 'HF_UNREACHABLE*in time*' 'where there is nothing else it is out of reach'

# A redlock whose nodes are all named like that, and have less time.
names=
for i in 5 6 7; do
    far_redis "n$i" "$i"
    black_hole "$i"
    name_addresses "n$i.holdfast.test" "10.9.$i.3" "10.9.$i.2"
    names=$names,n$i.holdfast.test:$(port "n$i")
done
client r "redlock://${names#,}?node_timeout=1s"
is "$answer" ok 'a redlock of such names opens'
ask r acquire 1 x 10000 5000
like "$answer" 'ok *' 'and grants'
ask r release 1
is "$answer" ok 'and releases'
done_testing
