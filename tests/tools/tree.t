#!/bin/sh
# tree.t - this tree keeps the rules of tests/tidy.sh.
# run: once
set -u
cd "$(dirname "$0")/../.." || exit 1
git rev-parse --git-dir >/dev/null 2>&1 || { echo '1..0 # SKIP no git repository: nobody knows which files are ours'; exit 0; }
echo 1..1
if breaches=$(tests/tidy.sh 2>&1); then
    echo 'ok 1 - the tree is tidy'
else
    echo 'not ok 1 - the tree is tidy'
    echo "$breaches" | sed 's/^/#   /'
    exit 1
fi
