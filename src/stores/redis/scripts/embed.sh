#!/bin/sh
# embed.sh FILE.lua... - print the scripts as C, each with its SHA-1, in the order given. A line
# "-- include NAME" is replaced by that file of the same folder.
set -eu

whole() {
    awk -v dir="$(dirname "$1")" '
        /^ *-- include / { while ((getline line < (dir "/" $3)) > 0) print line; close(dir "/" $3); next }
        { print }' "$1"
}

echo '/* Made by embed.sh from the Lua files. */'
echo '#include "stores/redis/script.h"'
echo
echo 'const struct rd_script rd_scripts[RD_SCRIPT_COUNT] = {'
for file in "$@"; do
    name=$(basename "$file" .lua)
    upper=$(echo "$name" | tr '[:lower:]' '[:upper:]')
    echo "    [RD_SCRIPT_$upper] = {\"$name\", \"$(whole "$file" | sha1sum | cut -d' ' -f1)\","
    whole "$file" | sed 's/\\/\\\\/g; s/"/\\"/g; s/^/        "/; s/$/\\n"/'
    echo '    },'
done
echo '};'
