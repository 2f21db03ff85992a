#!/bin/sh
# install.sh install|uninstall - called by make, which says in the environment what goes where.
#
# One list says what is installed; uninstall removes the same, and the folders that are empty then.
set -eu
what=${1:?usage: install.sh install|uninstall}
: "${DESTDIR=}" "${PREFIX:?}" "${BINDIR:?}" "${LIBDIR:?}" "${INCDIR:?}" "${MANDIR:?}" "${PLUGINDIR:?}"
: "${UNITDIR:?}" "${BUILD:?}" "${LIB_SO:?}" "${PLUGINS=}"

put() { # MODE FILE PATH
    if [ "$what" = install ]; then
        install -D -m "$1" "$2" "$DESTDIR$3"
    else
        take "$3"
    fi
}

# Those that a prefix has anyway stay.
take() { # PATH
    rm -f "$DESTDIR$1"
    folder=$(dirname "${1#"$PREFIX"/}")
    while :; do
        case $folder in /* | . | bin | lib | include | share | share/man) return ;; esac
        rmdir "$DESTDIR$PREFIX/$folder" 2>/dev/null || return 0
        folder=$(dirname "$folder")
    done
}

put_all() { # MODE FOLDER FILE...
    mode=$1
    place=$2
    shift 2
    for file in "$@"; do put "$mode" "$file" "$place/$(basename "$file")"; done
}

everything() {
    put 755 "$BUILD/holdfast" "$BINDIR/holdfast"
    # shellcheck disable=SC2086 # a list of words
    put_all 755 "$PLUGINDIR" $PLUGINS
    put_all 644 "$LIBDIR" "$BUILD/libholdfast.a"
    put_all 755 "$LIBDIR" "$LIB_SO"
    put_all 644 "$LIBDIR/pkgconfig" "$BUILD/holdfast.pc"
    put_all 644 "$INCDIR" include/holdfast.h bindings/cpp/holdfast.hpp
    put_all 644 "$INCDIR/holdfast" include/holdfast/*.h
    for section in 1 3 7; do put_all 644 "$MANDIR/man$section" man/*.$section; done
    put 644 completion/holdfast.bash "$PREFIX/share/bash-completion/completions/holdfast"
    put_all 644 "$PREFIX/share/zsh/site-functions" completion/_holdfast
    put_all 644 "$PREFIX/share/fish/vendor_completions.d" completion/holdfast.fish
    for unit in systemd/*.in; do put_all 644 "$UNITDIR" "$BUILD/systemd/$(basename "$unit" .in)"; done
}

# Without the cache of the dynamic linker, programs link with the library and then do not start. Only root can
# write it, and it is about the system itself, not about a folder in which a package is made.
tell_linker() {
    [ -z "$DESTDIR" ] || return 0
    if [ "$(id -u)" != 0 ] || ! PATH=$PATH:/sbin:/usr/sbin ldconfig 2>/dev/null; then
        echo "Please run as root, so that programs find the library:  ldconfig"
    elif ! PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -qF "=> $LIBDIR/"; then
        echo "The dynamic linker does not look into $LIBDIR. Programs need LD_LIBRARY_PATH=$LIBDIR, or"
        echo "(as root)  echo $LIBDIR >/etc/ld.so.conf.d/holdfast.conf && ldconfig"
    fi
}

case $what in
install)
    everything
    ln -sf "$(basename "$LIB_SO")" "$DESTDIR$LIBDIR/libholdfast.so"
    tell_linker
    echo "installed in $DESTDIR$PREFIX"
    ;;
uninstall)
    # Also plugins of an earlier build, whose client libraries are gone by now.
    everything
    for name in $(scripts/plugins.sh names); do
        take "$PLUGINDIR/$name.so"
        take "$PLUGINDIR/holdfast-$name"
    done
    take "$LIBDIR/libholdfast.so"
    [ -n "$DESTDIR" ] || [ "$(id -u)" != 0 ] || PATH=$PATH:/sbin:/usr/sbin ldconfig 2>/dev/null || true
    echo "removed from $DESTDIR$PREFIX; locks and jobs are where they were: /var/lib/holdfast, /etc/holdfast"
    ;;
*)
    echo "install.sh: install or uninstall, not '$what'" >&2
    exit 64
    ;;
esac
