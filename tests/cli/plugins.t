#!/bin/bash
# Where plugins come from: never from the folder that somebody happens to work in.
# run: once
set -u
. "$(dirname "$0")/lib.sh"
build=$(cd "${BUILD:-build}" && pwd)

# A folder that looks like ours, with a plugin that we do not have.
mkdir -p "$dir/foreign/stores" "$dir/empty"
cp "$build/tests/plugins/tiny.so" "$dir/foreign/stores/"
touch "$dir/foreign/holdfast" "$dir/foreign/libholdfast.so.0"
cd "$dir/foreign" || exit 1
unset HOLDFAST_STORE_PATH

for name in holdfast ./holdfast "$dir/foreign/holdfast"; do
    run bash -c "exec -a $name $hf --store tiny://h run -n job -- true"
    is "$rc" 64 "called $name: no plugin from where that leads"
    like "$err" 'unknown store scheme' "called $name: says so"
done

# Nobody listens on port 1: the plugin was found if the failure is its own.
for name in holdfast "$dir/empty/holdfast" ''; do
    run bash -c "exec -a '$name' $hf --store redis://127.0.0.1:1 run -n job -- true"
    is "$rc" 69 "called '$name': the plugins beside the program are found"
done
ln -s "$hf" "$dir/empty/link"
run "$dir/empty/link" --store redis://127.0.0.1:1 run -n job -- true
is "$rc" 69 'called by a symbolic link: they are found, too'

HOLDFAST_STORE_PATH=$dir/foreign/stores run "$hf" --store tiny://h run -n job -- true
is "$rc" 0 'HOLDFAST_STORE_PATH says where else to look'
for path in stores ./stores .:stores "$dir/empty:stores" ''; do
    HOLDFAST_STORE_PATH=$path run "$hf" --store tiny://h run -n job -- true
    is "$rc" 64 "HOLDFAST_STORE_PATH=$path: only absolute folders count"
done
HOLDFAST_STORE_PATH=stores run "$hf" --store nosuch://h run -n job -- true
unlike "$err" 'stores/nosuch' 'a relative folder is not looked at'

# A store that opens, but has something to say.
for command in 'run -n job -- echo done' 'acquire -n job' list 'status job'; do
    # shellcheck disable=SC2086 # words
    HOLDFAST_STORE_PATH=$build/tests/plugins run "$hf" --store wary://h $command
    is "$rc" 0 "$command: a warning is no failure"
    like "$err" 'warning: store wary: mind the [?]\[2J gap' "$command: it is shown"
    unlike "$out" 'mind' "$command: and not among the output"
done

# A library that was loaded by a relative path, in a process that has moved since.
cat >"$dir/load.py" <<END
import ctypes, os, sys
os.chdir("$build")
lib = ctypes.CDLL("./libholdfast.so.0")
os.chdir("$dir/foreign")
store = ctypes.c_void_p()
print(lib.hf_open(sys.argv[1].encode(), ctypes.byref(store), None))
END
run python3 "$dir/load.py" tiny://h
unsupported=$out
run python3 "$dir/load.py" nosuch://h
is "$unsupported" "$out" 'a library: no plugin from where the process works'
run python3 "$dir/load.py" redis://127.0.0.1:1
[ "$rc" -eq 0 ] && [ "$out" != "$unsupported" ]
ok $? 'a library: the plugins beside it are found'

done_testing
