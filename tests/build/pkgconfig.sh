#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm.pc says what a program needs, and no more.

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
tap_done
