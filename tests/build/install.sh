#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What make install puts down serves a program that knows pkg-config alone; make
# uninstall takes all of it away.

. "$abs_top_srcdir/tests/tap.sh"

root=$scratch/root
unset DSCOMM_BACKEND_PATH MAKEFLAGS MFLAGS MAKELEVEL

# makes TARGET
makes()
{
    "$MAKE" -C "$abs_top_builddir" "$1" DESTDIR="$root" >"$scratch/log" 2>&1 &&
        return
    sed 's/^/# /' "$scratch/log"
    return 1
}

makes install
result $? 'make install' || { tap_done; exit; }

export PKG_CONFIG_SYSROOT_DIR="$root"
export PKG_CONFIG_PATH="$root$libdir/pkgconfig"
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
export LD_LIBRARY_PATH="$root$libdir"

cat >"$scratch/app.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <dscomm/dscomm.h>

int main(void)
{
    if (dscomm_version() != DSCOMM_VERSION)
        return 1;
    puts(dscomm_version_string());
    return 0;
}
END
# Flags are words on purpose.
# shellcheck disable=SC2046,SC2086
$CC $SANITIZER_FLAGS -o "$scratch/app" "$scratch/app.c" \
    $("$PKG_CONFIG" --cflags --libs dscomm) 1>&2
result $? 'a program compiles with pkg-config alone'
is "$("$scratch/app")" "$PACKAGE_VERSION" 'and runs'

cat >"$scratch/codecs.c" <<'END'
#include <stdio.h>
#include <dscomm/codec.h>
#include <dscomm/compression.h>

int main(void)
{
    puts(dscomm_codec_find("onebit") ? "onebit" : "none");
    return dscomm_compressor_free(NULL);
}
END
# shellcheck disable=SC2046,SC2086
$CC $SANITIZER_FLAGS -o "$scratch/codecs" "$scratch/codecs.c" \
    $("$PKG_CONFIG" --cflags --libs dscomm-compression) 1>&2
result $? 'and one with compression'
is "$("$scratch/codecs")" onebit 'and runs'

if [ -x "$abs_top_builddir/examples/digits/digits" ]; then
    # Not all of the folders: a build may be in there as well.
    mkdir -p "$scratch/examples/digits" "$scratch/examples/optimizers"
    cp "$abs_top_srcdir/examples/Makefile" "$scratch/examples"
    cp "$abs_top_srcdir/examples/digits/digits."* "$scratch/examples/digits"
    cp "$abs_top_srcdir/examples/optimizers/"*.[ch] \
        "$scratch/examples/optimizers"
    "$MAKE" -C "$scratch/examples" digits/digits CC="$CC $SANITIZER_FLAGS" \
        PKG_CONFIG="$PKG_CONFIG" 1>&2
    result $? 'the example digits is built by its own Makefile'
    "$scratch/examples/digits/digits" -e 1 --compress onebit --warmup 20 \
        "$scratch/examples/digits/digits.csv.gz" | grep -q '^test accuracy: '
    result $? 'and learns'
else
    skip 'the example digits' 'no zlib'
fi

find "$root" -name '*.so' -exec readelf -d {} + |
    grep -E 'R(UN)?PATH' | grep -F "$abs_top_builddir" 1>&2
is $? 1 'no library remembers where it was built'

makes uninstall
result $? 'make uninstall'
find "$root" ! -type d >"$scratch/left"
find "$root$prefix" -mindepth 1 -type d -name dscomm >>"$scratch/left"
same "$scratch/left" /dev/null 'nothing is left'
tap_done
