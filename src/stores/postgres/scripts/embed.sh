#!/bin/sh
# embed.sh FILE.sql... - print the steps of the schema as C, in the order given. A step's version is the
# number its file's name starts with.
set -eu

echo '/* Made by embed.sh from the SQL files. */'
echo '#include "stores/postgres/schema.h"'
echo
echo 'const struct pg_step pg_steps[] = {'
for file in "$@"; do
    name=$(basename "$file" .sql)
    echo "    {$(echo "$name" | sed 's/^0*\([0-9]*\)_.*/\1/'), \"$name\","
    sed 's/\\/\\\\/g; s/"/\\"/g; s/^/        "/; s/$/\\n"/' "$file"
    echo '    },'
done
echo '};'
echo 'const size_t pg_step_count = sizeof pg_steps / sizeof *pg_steps;'
