#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm.pc and dscomm-compression.pc say what a program needs, and no more.

. "$abs_top_srcdir/tests/tap.sh"

file=$abs_top_builddir/dscomm.pc

"$PKG_CONFIG" --validate "$file"
result $? 'dscomm.pc is valid'

is "$("$PKG_CONFIG" --modversion "$file")" "$PACKAGE_VERSION" 'version'

libs=$(PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 "$PKG_CONFIG" --libs "$file")
is "${libs% }" "-L$libdir -ldscomm" 'programs link libdscomm alone'

is "$("$PKG_CONFIG" --variable=backenddir "$file")" "$backenddir" \
    'modules of others find their folder'

is "$("$PKG_CONFIG" --print-requires "$file")" '' 'nothing is required'
is "$("$PKG_CONFIG" --print-requires-private "$file")" 'glib-2.0 >= 2.66' \
    'GLib is private'

export PKG_CONFIG_PATH="$abs_top_builddir:$abs_top_builddir/compression"
file=$abs_top_builddir/compression/dscomm-compression.pc
"$PKG_CONFIG" --validate "$file"
result $? 'dscomm-compression.pc is valid'
is "$("$PKG_CONFIG" --modversion "$file")" "$PACKAGE_VERSION" 'its version'
libs=$(PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 "$PKG_CONFIG" --libs "$file")
is "${libs% }" "-L$libdir -ldscomm-compression -ldscomm" \
    'programs link both libraries'
is "$("$PKG_CONFIG" --print-requires "$file")" dscomm 'dscomm is required'
tap_done
