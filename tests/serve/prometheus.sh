# prometheus.sh - Debian's Prometheus for the tests: unpacked into build/, not installed: its package starts a server.
# Sourced by bash, after stage.sh. Sets $promtool and $prometheus, or skips all.
# shellcheck shell=bash disable=SC2034,SC2154 # some are for those who source it, some come from stage.sh

prometheus_fetch() ( # FOLDER
    flock 9
    [ ! -x "$1/usr/bin/promtool" ] || return 0
    new=$(mktemp -d "$1.XXXXXX") && cd "$new" || return 1
    apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; } || return 1
    dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb && rm -rf "$1" && mv "$new" "$1"
) 9>"$1.lock" >/dev/null 2>&1

promtool=$(command -v promtool)
prometheus=$(command -v prometheus)
if [ -z "$promtool" ] || [ -z "$prometheus" ]; then
    mkdir -p "$root/build"
    prometheus_fetch "$root/build/prometheus" || skip_all 'prometheus cannot be fetched'
    promtool=$root/build/prometheus/usr/bin/promtool
    prometheus=$root/build/prometheus/usr/bin/prometheus
fi
