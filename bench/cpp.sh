#!/bin/sh
# cpp.sh - an acquire and release in C++ beside the same in C, in one program. Prints rows as rows.sh does.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
build=${BUILD:-build}
c++ -std=c++17 -O2 -Wall -Wextra -Iinclude -Ibindings/cpp -Ibench bench/cpp.cc "$build/libholdfast.a" -pthread -o "$dir/cpp"
"$dir/cpp" "$dir/store"
