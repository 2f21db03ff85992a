#!/bin/sh
# plugins.sh WHAT - what is known of the plugins of this tree: folders of src/stores, src/dbs and src/senders with
# a file `apt`, the Debian packages that a build of it needs; and the server, src/serve, which lies beside them.
#
#   names         of the plugins
#   apt           those packages, each once
#   table         a line of C for each plugin: its name, the package that has it, what a build needs
#   built NAME... what `make` says in the end: what was built, what was not and for want of what
set -eu
cd "$(dirname "$0")/.."

# "NAME FOLDER" of each. A database's plugin is called db-NAME, a sender's send-NAME.
plugins() {
    for folder in src/stores/*/apt src/dbs/*/apt src/senders/*/apt src/serve/apt; do
        folder=${folder%/apt}
        case $folder in
        src/stores/*) echo "${folder##*/} $folder" ;;
        src/dbs/*) echo "db-${folder##*/} $folder" ;;
        src/senders/*) echo "send-${folder##*/} $folder" ;;
        src/serve) echo "serve $folder" ;;
        esac
    done
}

names() {
    plugins | cut -d ' ' -f 1
}

apt() {
    plugins | while read -r _ folder; do cat "$folder/apt"; done | tr ' ' '\n' | sort -u | tr '\n' ' '
}

table() {
    plugins | while read -r name folder; do
        echo "{\"$name\", \"holdfast-${folder##*/}\", \"$(cat "$folder/apt")\"},"
    done
}

built() {
    made='file'
    skipped=
    wants=
    while read -r name folder; do
        case " $* " in
        *" $name "*) made="$made $name" ;;
        *)
            skipped="$skipped $name"
            wants="$wants $(cat "$folder/apt")"
            ;;
        esac
    done <<END
$(plugins)
END
    command -v pkg-config >/dev/null || wants="$wants pkg-config"
    wants=$(echo "$wants" | tr ' ' '\n' | sed '/^$/d' | sort -u | tr '\n' ' ')
    if [ -z "$skipped" ]; then
        echo "built: $made; nothing skipped"
    else
        echo "built: $made; skipped:$skipped, for want of ${wants% } (apt-get install ${wants% } && make)"
    fi
}

what=${1:?usage: plugins.sh names|apt|table|built NAME...}
shift
case $what in
names | apt | table | built) "$what" "$@" ;;
*) echo "plugins.sh: unknown word '$what'; known are: names apt table built" >&2 && exit 64 ;;
esac
