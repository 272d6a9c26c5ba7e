#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A library exports what its map lists, each name in its node; the map lists what
# the headers declare; tests use each name, and NEWS has those that were added to a release;
# a module exports its descriptor and nothing else.

. "$abs_top_srcdir/tests/tap.sh"

map=$abs_top_srcdir/lib/libdscomm.map
headers=$abs_top_srcdir/lib/dscomm

# listed MAP: "node name" of every line
listed()
{
    awk '/ \{$/ { node = $1 } /^ +dscomm_[a-z0-9_]+;$/ {
        sub(";", ""); print node, $1 }' "$1" | sort
}

# "node name" of every exported function, or "- name" of what has no node
exported()
{
    # NM may hold flags.
    # shellcheck disable=SC2086
    $NM -D --defined-only "$1" | awk '$2 != "A" {
        if (split($3, part, "@+") == 1) part[2] = "-"; print part[2], part[1] }' |
        sort
}

# declared FILE...: names marked DSCOMM_API
declared()
{
    cat "$@" | awk '
        /^#/ { while (/\\$/) getline; next }
        /^(DSCOMM_API|DSCOMM_BACKEND_EXPORT) / { text = ""; open = 1 }
        open { text = text " " $0 }
        open && /;/ {
            match(text, /dscomm_[a-z0-9_]+ ?\(/)
            name = substr(text, RSTART, RLENGTH)
            gsub(/[ (]/, "", name)
            print name
            open = 0
        }' | sort
}

public_headers=$(find "$headers" -name '*.h' ! -name backend.h)
listed "$map" >"$scratch/listed"
exported "$abs_top_builddir/lib/.libs/libdscomm.so" >"$scratch/exported"
# One word a header.
# shellcheck disable=SC2086
declared $public_headers >"$scratch/public"
declared "$headers/backend.h" >"$scratch/private"
sed -n 's/^DSCOMM_[0-9.]* //p' "$scratch/listed" | sort >"$scratch/map-public"
sed -n 's/^DSCOMM_PRIVATE_[0-9]* //p' "$scratch/listed" >"$scratch/map-private"

same "$scratch/map-public" "$scratch/public" 'public node = public headers'
same "$scratch/map-private" "$scratch/private" 'private node = backend.h'
same "$scratch/exported" "$scratch/listed" 'libdscomm exports its map'

for path in compression profiler backends/net; do
    name=${path##*/}
    folder=$abs_top_srcdir/$path
    library=$abs_top_builddir/$path/.libs/libdscomm-$name.so
    listed "$folder/libdscomm-$name.map" >"$scratch/listed"
    exported "$library" >"$scratch/exported"
    declared "$folder"/dscomm/*.h >"$scratch/public"
    sed 's/^DSCOMM_[A-Z]*_[0-9.]* //' "$scratch/listed" | sort \
        >"$scratch/map-public"
    same "$scratch/map-public" "$scratch/public" "libdscomm-$name: its headers"
    same "$scratch/exported" "$scratch/listed" "libdscomm-$name: its map"
    [ "$name" = net ] && continue # it is for backends itself
    # shellcheck disable=SC2086
    $NM -D --undefined-only "$library" |
        sed -n 's/^ *U \(dscomm_.*@DSCOMM_PRIVATE.*\)/\1/p' >"$scratch/private-needs"
    same "$scratch/private-needs" /dev/null \
        "libdscomm-$name needs nothing that is for backends"
done

maps="$map $abs_top_srcdir/compression/libdscomm-compression.map
    $abs_top_srcdir/profiler/libdscomm-profiler.map $abs_top_srcdir/backends/net/libdscomm-net.map"
for file in $maps; do
    listed "$file"
done | sed -n '/^DSCOMM_PRIVATE_/d; s/^[^ ]* //p' | sort >"$scratch/names"
# A macro of profiler.h calls its functions.
grep -rohwE --include='*.[ch]' --include='*.cpp' --include='*.f90' --include='*.py' --include='*.sh' \
    --exclude-dir=build 'dscomm_[a-z0-9_]+|DSCOMM_PROFILER_SITE' "$abs_top_srcdir/tests" |
    sed 's/^DSCOMM_PROFILER_SITE$/dscomm_profiler_site_begin\ndscomm_profiler_site_end/' |
    sort -u | comm -13 - "$scratch/names" >"$scratch/untested"
same "$scratch/untested" /dev/null 'tests use each name'
for file in $maps; do
    listed "$file" | awk 'NR == 1 { first = $1 } $1 != first && $1 !~ /PRIVATE/ { print $2 }'
done | while read -r name; do
    grep -qwF "$name" "$abs_top_srcdir/NEWS" || echo "$name"
done >"$scratch/unnamed"
same "$scratch/unnamed" /dev/null 'NEWS has each name of later releases'

abi=$(sed -n 's/^#define DSCOMM_BACKEND_ABI //p' "$headers/backend.h")
echo "DSCOMM_PRIVATE_$abi" >"$scratch/want"
sed -n 's/^\(DSCOMM_PRIVATE_[0-9]*\) .*/\1/p' "$map" >"$scratch/got"
same "$scratch/got" "$scratch/want" 'private node is named for the ABI'

for module in "$abs_top_builddir"/backends/.libs/*.so; do
    [ -e "$module" ] || continue
    name=$(basename "$module" .so)
    echo "- dscomm_backend_$name" >"$scratch/want"
    exported "$module" >"$scratch/got"
    same "$scratch/got" "$scratch/want" "$name.so exports its descriptor"
done
tap_done
