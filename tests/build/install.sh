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

for file in README.md NEWS COPYING HACKING.md SECURITY.md doc/performance.md; do
    cmp "$root$docdir/$file" "$abs_top_srcdir/$file" 1>&2
    result $? "$file is among the documents"
done

# Of what a program needs to run; the rest is for who builds programs.
find "$root$libdir" ! -type d ! -name '*.la' ! -path '*/pkgconfig/*' \
    ! -name libdscomm.so ! -name libdscomm-compression.so \
    ! -name libdscomm-profiler.so ! -name libdscomm-net.so |
    grep -vE '/lib[a-z-]+\.so\.0(\.|$)|/dscomm-0/|/dscomm-compression-0/' \
        >"$scratch/unversioned"
same "$scratch/unversioned" /dev/null 'each file of the libraries has the number of the SONAME'
find "$root$moduledir" "$root$compressionmoduledir" -name '*.la' \
    >"$scratch/archives" 2>/dev/null
same "$scratch/archives" /dev/null 'modules have no .la file'

# Packages may leave out all modules but one, and any MPI library's.
find "$root$moduledir" -name '*.so' | sed "s|^$root$backenddir/||" |
    grep -vxE '(shm|tcp|ibverbs)\.so|mpi\.so|mpi/(openmpi|mpich)\.so' \
        >"$scratch/unknown"
same "$scratch/unknown" /dev/null 'a module is a file'
rm -rf "$scratch/backends"
cp -R "$root$backenddir" "$scratch/backends"
rm -rf "$scratch/backends/mpi"
if [ -e "$scratch/backends/mpi.so" ]; then
    line=$(unset DSCOMM_MPI_PATH; DSCOMM_BACKEND_PATH=$scratch/backends \
        DSCOMM_BACKEND=mpi "$root$bindir/dscomm" run -n 2 \
        "$abs_top_builddir/examples/hello/hello" 2>&1)
    like "$line" 'there is no module for (openmpi|an MPI library)' \
        'backend mpi without any library is told'
else
    skip 'backend mpi without any library' 'no backend mpi'
fi
is "$(DSCOMM_BACKEND_PATH=$scratch/backends "$root$bindir/dscomm" run -n 2 \
    "$abs_top_builddir/examples/hello/hello" | sort | tail -n 1)" \
    'rank 1 of 2: the sum of all ranks is 1' 'shm works alone'

if [ -x "$abs_top_builddir/examples/digits/digits" ]; then
    # As the guide says
    documents=$(unset PKG_CONFIG_SYSROOT_DIR; "$PKG_CONFIG" --variable=docdir dscomm)
    cp -R "$root$documents/examples" "$scratch"
    chmod -R u+w "$scratch/examples"
    "$MAKE" -C "$scratch/examples" CC="$CC $SANITIZER_FLAGS" \
        PKG_CONFIG="$PKG_CONFIG" 1>&2
    result $? 'the examples are built by their own Makefile'
    for name in messages mesh store; do
        "$root$bindir/dscomm" run -n 2 "$scratch/examples/$name/$name" >"$scratch/log" 2>&1
        result $? "the example $name runs"
    done
    "$scratch/examples/digits/digits" -e 1 --compress onebit --warmup 20 \
        "$scratch/examples/digits/digits.csv.gz" | grep -q '^test accuracy: '
    result $? 'and digits learns'
else
    skip 'the example digits' 'no zlib'
fi

find "$root" -name '*.so' -exec readelf -d {} + |
    grep -E 'R(UN)?PATH' | grep -F "$abs_top_builddir" 1>&2
is $? 1 'no library remembers where it was built'

makes uninstall
result $? 'make uninstall'
find "$root" ! -type d >"$scratch/left"
find "$root$prefix" -mindepth 1 -type d -name 'dscomm*' >>"$scratch/left"
same "$scratch/left" /dev/null 'nothing is left'
tap_done
