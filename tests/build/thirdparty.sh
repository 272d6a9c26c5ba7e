#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Backends of somebody else's: built outside the tree from what is installed, by the
# Makefile of the examples with pkg-config alone, and held to the whole conformance suite.
# One is complete, the other one a wire below the message engine.

. "$abs_top_srcdir/tests/backends/conform.sh"

root=$scratch/root
unset DSCOMM_BACKEND_PATH
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "$MAKE" -C "$abs_top_builddir" install \
    DESTDIR="$root" >"$scratch/log" 2>&1
result $? 'make install' || { sed 's/^/# /' "$scratch/log"; tap_done; exit; }

export PKG_CONFIG_SYSROOT_DIR="$root"
export PKG_CONFIG_PATH="$root$libdir/pkgconfig"
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
export LD_LIBRARY_PATH="$root$libdir"
folder=$("$PKG_CONFIG" --variable=backenddir dscomm)
DSCOMM_BACKEND_PATH=$root${folder#"$root"}
export DSCOMM_BACKEND_PATH

# third FOLDER NAME LINES: the example FOLDER/NAME.c, of fewer lines, becomes a backend
third()
{
    module=$1/$2.so
    mkdir -p "$scratch/$1"
    cp "$abs_top_srcdir/examples/$1/$2.c" "$scratch/$1" || exit 99
    lines=$(wc -l <"$scratch/$1/$2.c")
    [ "$lines" -lt "$3" ]
    result $? "$2: less than $3 lines" || echo "# $lines"
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "$MAKE" -C "$scratch" \
        -f "$abs_top_srcdir/examples/Makefile" CC="$CC $SANITIZER_FLAGS" \
        CFLAGS='-O2 -Wall -Wextra -Werror' PKG_CONFIG="$PKG_CONFIG" "$module" 1>&2
    result $? "$2 compiles" || return
    install -m 755 "$scratch/$module" "$DSCOMM_BACKEND_PATH"
    result $? 'it is installed'
    like "$("$abs_top_builddir/tools/dscomm" info --backends)" \
        "^  $2  *priority 0, $DSCOMM_BACKEND_PATH/$2.so\$" 'it is found'
    conform_must_fail "$2" 3
    for n in 1 2 3 5; do
        conform "$2" $n
    done
}

third backend mailbox 350
third wire datagram 250
tap_done
