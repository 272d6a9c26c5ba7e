#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A backend of somebody else's: built outside the tree from what is installed, with
# pkg-config alone, in less than 350 lines, and held to the whole conformance suite.

. "$abs_top_srcdir/tests/backends/conform.sh"

root=$scratch/root
mkdir "$scratch/backend"
cp "$abs_top_srcdir/examples/backend/mailbox.c" "$scratch/backend" || exit 99
unset DSCOMM_BACKEND_PATH
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "$MAKE" -C "$abs_top_builddir" install \
    DESTDIR="$root" >"$scratch/log" 2>&1
result $? 'make install' || { sed 's/^/# /' "$scratch/log"; tap_done; exit; }

export PKG_CONFIG_SYSROOT_DIR="$root"
export PKG_CONFIG_PATH="$root$libdir/pkgconfig"
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1

lines=$(wc -l <"$scratch/backend/mailbox.c")
[ "$lines" -lt 350 ]
result $? 'less than 350 lines' || echo "# $lines"
cd "$scratch/backend" || exit 99
# Flags are words on purpose.
# shellcheck disable=SC2046,SC2086
$CC $SANITIZER_FLAGS -O2 -Wall -Wextra -Werror -fPIC -shared -o mailbox.so mailbox.c \
    $("$PKG_CONFIG" --cflags --libs dscomm) 1>&2
result $? 'the backend compiles' || { tap_done; exit; }
folder=$("$PKG_CONFIG" --variable=backenddir dscomm)
install -m 755 mailbox.so "$root${folder#"$root"}"
result $? 'it is installed'

DSCOMM_BACKEND_PATH=$root${folder#"$root"}
export DSCOMM_BACKEND_PATH
like "$("$abs_top_builddir/tools/dscomm" info --backends)" \
    "^  mailbox  *priority 0, $DSCOMM_BACKEND_PATH/mailbox.so\$" 'it is found'
conform_must_fail mailbox 3
for n in 2 3 5; do
    conform mailbox $n
done
tap_done
