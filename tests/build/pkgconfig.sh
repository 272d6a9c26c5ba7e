#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm.pc and those of the libraries on top of it say what a program needs, and no more.

. "$abs_top_srcdir/tests/tap.sh"

# Those that are installed, not those for this folder
PKG_CONFIG_DISABLE_UNINSTALLED=1
export PKG_CONFIG_DISABLE_UNINSTALLED
file=$abs_top_builddir/dscomm.pc

"$PKG_CONFIG" --validate "$file"
result $? 'dscomm.pc is valid'

is "$("$PKG_CONFIG" --modversion "$file")" "$PACKAGE_VERSION" 'version'

libs=$(PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 "$PKG_CONFIG" --libs "$file")
is "${libs% }" "-L$libdir -ldscomm" 'programs link libdscomm alone'

for name in bindir docdir moduledir backenddir fortrandir; do
    is "$("$PKG_CONFIG" --variable=$name "$file")" "$(eval "echo \$$name")" "$name"
done
is "$("$PKG_CONFIG" --variable=backend_abi "$file")" "$(
    printf '#include <dscomm/backend.h>\nDSCOMM_BACKEND_ABI\n' |
        $CC -E -P -I"$abs_top_srcdir/lib" - | tail -n 1)" 'backend_abi'

# Without any other .pc file
alone()
{
    PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=$abs_top_builddir:$abs_top_builddir/compression:$abs_top_builddir/profiler:$abs_top_builddir/backends/net \
        PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 "$PKG_CONFIG" "$@"
}
for name in dscomm dscomm-compression dscomm-profiler dscomm-net; do
    cflags=$(alone --cflags $name)
    is "${cflags% }" "-I$includedir" "$name: --cflags needs no GLib"
    is "$(alone --static --libs $name)" "$(alone --libs $name)" "$name: --static needs no more"
    alone --exists $name
    result $? "$name: --exists needs none"
done

export PKG_CONFIG_PATH="$abs_top_builddir"
for path in compression profiler backends/net; do
    name=${path##*/}
    file=$abs_top_builddir/$path/dscomm-$name.pc
    "$PKG_CONFIG" --validate "$file"
    result $? "dscomm-$name.pc is valid"
    is "$("$PKG_CONFIG" --modversion "$file")" "$PACKAGE_VERSION" 'its version'
    libs=$(PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 "$PKG_CONFIG" --libs "$file")
    is "${libs% }" "-L$libdir -ldscomm-$name -ldscomm" 'programs link both libraries'
    is "$("$PKG_CONFIG" --print-requires "$file")" dscomm 'dscomm is required'
done
tap_done
