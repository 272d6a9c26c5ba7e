#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The libraries offer programs all that those of the last release did. `make check-abi`
# builds that release, the last tag or the revision ABI_BASE, and compares by abidiff of
# libabigail. Functions, and last members of structures that tell their size, may be added;
# what else is removed or changed needs another SONAME, or another DSCOMM_BACKEND_ABI if it is
# for modules (HACKING.md, Releasing).

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
            profiler/libdscomm-profiler.la backends/net/libdscomm-net.la
)

# abi FOLDER: the ABI of modules of these sources
abi()
{
    sed -n 's/^#define DSCOMM_BACKEND_ABI //p' "$1/lib/dscomm/backend.h"
}

# What is no change of the interface, for abidiff: of types that the public headers do not
# define, and of what is for modules, if the modules of the release are refused
suppressions()
{
    public='[^/]+'
    [ "$(abi "$release")" = "$(abi "$abs_top_srcdir")" ] || {
        public='([^b]|b[^a])[^/]*' # not backend.h
        printf '[suppress_function]\n  symbol_version_regexp = ^DSCOMM_PRIVATE_\n'
    }
    printf '[suppress_type]\n  source_location_not_regexp = /dscomm/%s\\.h$\n' "$public"
}

# Structures of public headers that begin with their size
sized()
{
    cat "$abs_top_srcdir"/*/dscomm/*.h "$abs_top_srcdir"/backends/net/dscomm/*.h |
        awk '/^typedef struct dscomm_[a-z_]+ \{/ { name = $3; next }
            name && /^    size_t size;/ { print name }
            /;/ { name = "" }'
}

# grown REPORT: the report of abidiff has nothing but members behind the end of such
# structures, where older programs have no bytes. (Its has_data_member_inserted_at would
# also suppress a change of other members.)
grown()
{
    sized | awk '
        NR == FNR { sized[$1]; next }
        /summary:/ || /^$/ { next }
        /^\47struct .* changed:$/ && $2 in sized { next }
        /^  type size changed from / { size = $5; next }
        /^  [0-9]+ data member insertions?:$/ { next }
        /^    \47.*\47, at offset / {
            sub(/.*\47, at offset /, "")
            if ($1 + 0 >= size + 0) next
        }
        { other = 1 }
        END { exit other }' - "$1"
}

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
    abidiff --leaf-changes-only --no-added-syms --suppr "$scratch/suppressions" \
        "$old" "$new" >"$scratch/report"
    case $? in
    0 | 4) grown "$scratch/report" ;; # 4: there are changes, which may be compatible
    *) false ;;
    esac
    result $? "$name offers what it did in $base" || sed 's/^/# /' "$scratch/report"
}

release_build >"$scratch/log" 2>&1 || {
    result 1 "$base builds"
    tail -n 20 "$scratch/log" | sed 's/^/# /'
    tap_done
    exit
}
suppressions >"$scratch/suppressions"
compare lib/.libs/libdscomm.so
compare compression/.libs/libdscomm-compression.so
compare profiler/.libs/libdscomm-profiler.so
compare backends/net/.libs/libdscomm-net.so
tap_done
