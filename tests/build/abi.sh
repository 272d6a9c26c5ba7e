#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The libraries offer programs all that those of the last release did. `make check-abi`
# builds that release, the last tag or the revision ABI_BASE, and compares by abidiff of
# libabigail. Functions and last members of structures may be added; what is removed or
# changed needs another SONAME (HACKING.md, Releasing).

. "$abs_top_srcdir/tests/tap.sh"

command -v abidiff >/dev/null || skip_all 'no abidiff (Debian: abigail-tools)'
base=${ABI_BASE:-$(git -C "$abs_top_srcdir" describe --tags --abbrev=0 2>/dev/null)} ||
    skip_all 'no tag to compare with; give a revision by ABI_BASE'
release=$scratch/release
readelf -S "$abs_top_builddir/lib/.libs/libdscomm.so" | grep -q '\.debug_info' ||
    skip_all 'this build has no debugging information (-g)'

release_build()
(
    mkdir -p "$release/build" &&
        git -C "$abs_top_srcdir" archive "$base" | tar -x -C "$release" &&
        cd "$release" && autoreconf -i && cd build &&
        ../configure -q --disable-tools --disable-tests --disable-manual \
            --without-mpi --without-ibverbs --without-cuda CFLAGS='-g -O1' &&
        make -s -j2 lib/libdscomm.la compression/libdscomm-compression.la \
            profiler/libdscomm-profiler.la
)

# soname FILE
soname()
{
    readelf -d "$1" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p'
}

# compare PATH: one library of both
compare()
{
    old=$release/build/$1 new=$abs_top_builddir/$1 name=${1##*/}
    if [ "$(soname "$old")" != "$(soname "$new")" ]; then
        skip "$name" "its SONAME is new: $(soname "$new")"
        return
    fi
    abidiff --no-added-syms --suppr "$abs_top_srcdir/tests/build/abi.abignore" \
        "$old" "$new" >"$scratch/report"
    result $? "$name offers what it did in $base" || sed 's/^/# /' "$scratch/report"
}

release_build >"$scratch/log" 2>&1 || {
    result 1 "$base builds"
    tail -n 20 "$scratch/log" | sed 's/^/# /'
    tap_done
    exit
}
compare lib/.libs/libdscomm.so
compare compression/.libs/libdscomm-compression.so
compare profiler/.libs/libdscomm-profiler.so
tap_done
