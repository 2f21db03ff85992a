#!/bin/bash
# `holdfast fence write`, append, enter, show and reset: what a user sees.
set -u
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
unset HOLDFAST_STORE
cd "$dir" || exit 1

put() { # COMMAND TEXT ARGUMENT... : runs fence COMMAND with TEXT on stdin
    local command=$1 text=$2
    shift 2
    printf '%s' "$text" | "$hf" fence "$command" "$@" >out 2>err
    rc=$?
    err=$(cat err)
}

# ---- tokens ----
put write one f --token 34
is "$rc$(cat f)" 0one 'the first token is admitted'
put write two f --token 34
is "$rc$(cat f)" 0two 'an equal one too'
put write three f --token 33
is "$rc" 65 'a lower one: exit 65'
like "$err" '^holdfast: token 33 is stale: 34 was admitted at 20[0-9-]*T[0-9:]*Z to f$' 'and one sentence'
is "$(wc -l <err)" 1 'only one'
is "$(cat f)" two 'and nothing has changed'
put write four f --token 35
is "$rc$(cat f)" 0four 'a higher one is admitted'
put write five f
is "$rc" 64 'no token'
like "$err" 'give --token, or run this inside' 'and how to give one'
for bad in 0 9223372036854775808 -1 x 1.5 ''; do
    put write no f --token "$bad"
    is "$rc" 64 "'$bad' is no token"
done
is "$(cat f)" four 'none of them wrote'
put write big g --token 9007199254740993
put write low g --token 9007199254740992
is "$rc$(cat g)" 65big '2^53 + 1 and 2^53 are told apart'
put write biggest g --token 9223372036854775807
put write low g --token 9223372036854775806
is "$rc$(cat g)" 65biggest 'and so are the largest two'

# ---- the environment of `holdfast run` ----
printf 'from run' | HOLDFAST_STORE=file:$dir/store "$hf" run job -- "$hf" fence write h
is "$?$(cat h)" '0from run' 'inside run the token is known'
run "$hf" fence show h --json
like "$out" '^\{"token": [0-9]{16}, "admitted_at": "20.*Z", "issuer": "id:file:' 'and so is the issuer'
HOLDFAST_TOKEN=12 put write late h
is "$rc" 65 'HOLDFAST_TOKEN from elsewhere is judged as well'
HOLDFAST_TOKEN=abc put write late h
is "$rc" 64 'and has to be a token'

# ---- append ----
put append 'a' log --token 5
put append 'b' log --token 5
put append 'x' log --token 4
is "$rc$(cat log)" 65ab 'append adds, and refuses a lower token'
put append '' log --token 6
is "$rc$(cat log)" 0ab 'an empty one only raises the mark'
put append 'x' log --token 5
is "$rc" 65 'so that the old token is stale'
put write new log --token 6
put append '+' log --token 6
is "$(cat log)" new+ 'write and append go together'

# ---- enter ----
put enter '' f --token 40
is "$rc$(cat f)" 0four 'enter changes no data'
put write late f --token 39
is "$rc" 65 'and keeps lower tokens out'
put enter '' fresh --token 1
[ ! -e fresh ] && [ -e .fresh.fence ]
ok $? 'enter works before there is a file'

# ---- issuers and resets ----
put write a i --token 5 --issuer redis://a
put write b i --token 6 --issuer redis://b
is "$rc$(cat i)" 64a 'a token of another store is refused'
like "$err" "redis://b.*redis://a.*fence reset" 'with the remedy'
put write c i --token 6
is "$rc$(cat i)" 0c 'an issuer that is not said fits'
HOLDFAST_STORE=redis://user:secret@b put write d i --token 7
is "$rc" 64 'the store in the environment counts'
unlike "$err" secret 'without its password'
HOLDFAST_STORE=redis://x "$hf" --store redis://a fence write i --token 7 <<<e
is "$?$(cat i)" 0e '--store counts more'
run "$hf" fence reset i
is "$rc" 64 'a reset needs a reason'
run "$hf" fence reset i --reason 'moved to b' --issuer redis://b
is "$rc" 0 'with one it works'
put write f i --token 3 --issuer redis://b
is "$rc$(cat i)" 0f 'then the new tokens count'
grep -q 'reset 7 of redis://a to 0 of redis://b: moved to b' .i.fence
ok $? 'and the reset is on record'
run "$hf" fence show i
like "$out" '^3 admitted at .*, issued by redis://b$' 'show says who is admitted'
run "$hf" fence show nowhere
is "$rc$out" '0no token has been admitted yet' 'or nobody'
long=redis://$(printf 'h%.0s,' {1..200})
put write x long --token 5 --issuer "${long}a"
put write y long --token 5 --issuer "${long}b"
is "$rc$(cat long)" 64x 'long issuers that differ at the end differ'

# ---- damage ----
put write x broken --token 5
printf 'garbage' >.broken.fence
put write y broken --token 6
is "$rc$(cat broken)" 69x 'a damaged sidecar stops everything'
like "$err" "holdfast fence reset broken --reason" 'and names the remedy'
run "$hf" fence reset broken --reason 'damaged' --token 5
put write y broken --token 4
is "$rc" 65 'after a reset the given mark counts'
put write y broken --token 6
is "$rc$(cat broken)" 0y 'and all is well'
: >.broken.fence
put write z broken --token 7
is "$rc$(cat broken)" 69y 'an empty one too'

# ---- links and strange files ----
mkdir elsewhere
echo theirs >elsewhere/target
ln -s elsewhere/target out_link
put write mine out_link --token 5
is "$rc$(cat elsewhere/target)" 77theirs 'a link out of the directory is refused'
ln -s "$dir/f" abs_link
put write mine abs_link --token 99
is "$rc" 77 'an absolute one too'
ln -s f in_link
put write through in_link --token 41
is "$rc$(cat f)" 0through 'one inside the directory leads to its file'
[ -L in_link ]
ok $? 'and stays a link'
put write late in_link --token 40
is "$rc" 65 'and to its fence'
put write late f --token 40
is "$rc" 65 'the same under both names'
ln -s loop_b loop_a
ln -s loop_a loop_b
put write x loop_a --token 5
is "$rc" 77 'a loop of links is refused'
put write x elsewhere --token 5
is "$rc" 64 'a directory is no file'
put write x elsewhere/ --token 5
is "$rc" 64 'nor with a slash'
mkfifo pipe
put write x pipe --token 5
is "$rc" 64 'nor is a pipe'
put write x no/such/dir/f --token 5
is "$rc" 69 'no such directory'
ln -s elsewhere/target .sly.fence
put write x sly --token 5
is "$rc$(cat elsewhere/target)" 77theirs 'a sidecar that is a link is refused'
put write x safe --token 5
chmod o+w .safe.fence
put write y safe --token 6
is "$rc$(cat safe)" 77x 'a sidecar that everybody may write is refused'
like "$err" 'not safe' 'and it says why'
put write x "$(printf 'n%.0s' {1..250})" --token 5
is "$rc" 64 'a name that leaves no room for the sidecar'
put write x 'odd name; $(touch hacked)' --token 5
[ "$rc" = 0 ] && [ ! -e hacked ] && [ -e '.odd name; $(touch hacked).fence' ]
ok $? 'an odd name is a name'

# ---- attributes, sizes, left-overs ----
put write x mode --token 5
chmod 640 mode
put write y mode --token 5
is "$(stat -c %a mode)" 640 'the mode stays'
head -c 5000000 /dev/urandom >big
"$hf" fence write copy --token 5 <big
cmp -s big copy
ok $? 'five megabytes arrive whole'
is "$(find . -name '*.fence-*' | wc -l)" 0 'nothing is left over'
if [ "$(id -u)" = 0 ]; then
    mkdir -m 755 theirs
    put write x theirs/f --token 5
    chmod 755 "$dir"
    setpriv --reuid=nobody --regid=nogroup --clear-groups "$hf" fence write theirs/f --token 6 \
        <<<no >out 2>err
    is "$?$(cat theirs/f)" 77x 'a user without rights is refused'
else
    mkdir -m 555 locked
    put write x locked/f --token 5
    is "$rc" 77 'a user without rights is refused'
fi

# ---- two users of a directory that their group may write ----
if [ "$(id -u)" = 0 ]; then
    mkdir shared
    chgrp 61234 shared
    chmod 2775 shared
    chmod 755 "$dir"
    as() { # UID COMMAND...
        setpriv --reuid="$1" --regid="$1" --groups 61234 "${@:2}"
    }
    (umask 022; as 61001 "$hf" fence write shared/f --token 5 <<<first) 2>err
    is "$?$(cat shared/f)" 0first 'a member of the group writes a fenced file'
    (umask 022; as 61002 "$hf" fence write shared/f --token 6 <<<second) 2>err
    is "$?$(cat shared/f)" 0second 'and so does another'
    diag "$(cat err)"
    as 61001 "$hf" fence write shared/f --token 5 <<<late 2>err
    is "$?$(cat shared/f)" 65second 'by one mark'
    chmod 2777 shared
    as 61001 "$hf" fence write shared/f --token 7 <<<third 2>err
    as 61002 "$hf" fence write shared/f --token 8 <<<fourth 2>err
    is "$?" 77 'where everybody may write the directory, another user is not believed'
else
    ok 0 'a member of the group writes a fenced file # SKIP needs root'
fi

# ---- a command that produces the content ----
put write old made --token 5
run "$hf" fence write made --token 5 -- sh -c 'echo whole'
is "$rc$(cat made)" 0whole 'the output of a command is written'
run "$hf" fence write made --token 5 -- sh -c 'echo half; exit 3'
is "$rc$(cat made)" 3whole 'not if it fails: its exit code, and the file is as before'
like "$err" 'made is unchanged: "sh" exited with 3' 'and it says so'
run "$hf" fence write made --token 5 -- sh -c 'echo half; kill -9 $$'
is "$rc$(cat made)" 137whole 'nor if it is killed'
run "$hf" fence write made --token 4 -- echo late
is "$rc$(cat made)" 65whole 'nor if the token is stale'
run "$hf" fence write made --token 5 -- no-such-program
is "$rc$(cat made)" 127whole 'nor if there is no such program'
run "$hf" fence write made --token 5 -- /dev/null
is "$rc$(cat made)" 126whole 'or it cannot be executed'
run "$hf" fence write --token 5 -- made
is "$rc$(cat made)" 0 'what follows -- and no file is the file, as ever'
echo stdin | "$hf" fence write made --token 5 -- cat
is "$(cat made)" stdin 'the command reads standard input'
"$hf" fence write made --token 5 -- head -c 3000000 /dev/zero
is "$(stat -c %s made)" 3000000 'of any size'
run "$hf" fence write made --token 5 -- sh -c '(sleep 0.5; echo late) & echo early'
is "$rc$(tr '\n' , <made)" 0early,late, 'what it left behind is waited for, as in a pipeline'

# ---- somebody else is inside ----
put write x busy --token 5
flock_ofd() { # holds the sidecar as the fence does
    perl -e 'use Fcntl; open F, "+<", ".busy.fence" or die; my $l = pack "s s x4 l! l! i x4", F_WRLCK, 0, 0, 0, 0;
        fcntl(F, 37, $l) or die "$!"; $| = 1; print "held\n"; sleep 60' >held 2>&1
}
start flock_ofd
within 10 grep -q held held
put write y busy --token 6 --wait 300ms
is "$rc$(cat busy)" 75x 'a writer that stays inside is waited for, not for ever'
like "$err" 'another process is inside' 'and it says so'
# Three hundred years are not no time.
run timeout -s KILL 0.5 "$hf" fence write busy --token 6 --wait 2600000h
is "$rc" 137 'a wait longer than the clock can count is a wait'
put write late f --token 44
is "$rc" 0 'other files go on'
slow() { (sleep 1; echo slow) | "$hf" fence write spool --token 5; }
start slow
sleep 0.2
put write quick spool --token 6
is "$rc$(cat spool)" 0quick 'a writer whose input is slow keeps nobody waiting'
ended "$pid"
is "$rc$(cat spool)" 65quick 'and is judged when it has read it'

# ---- usage ----
for words in '' 'fly' 'write' 'write a b' 'sql' 'sql --dialect oracle --table t' 'sql --dialect sqlite' \
    'sql --dialect sqlite --table t --last' 'sql --dialect sqlite --table t --schema s' 'set redis://x' 'script now' 'enter' 'reset'; do
    # shellcheck disable=SC2086
    HOLDFAST_TOKEN=5 run "$hf" fence $words
    is "$rc" 64 "usage: fence $words"
done
run "$hf" fence wirte
like "$err" 'did you mean "write"' 'a slip is recognised'
run "$hf" fence write --help
is "$rc" 0 'there is help'
HOLDFAST_TOKEN=5 run "$hf" fence set "file:$dir/store" key
is "$rc" 64 'a store that holds no data says so'
like "$err" 'holds locks only' 'in a sentence'
done_testing
