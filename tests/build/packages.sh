#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What the files for packages repeat of the sources is the same there.

. "$abs_top_srcdir/tests/tap.sh"

cd "$abs_top_srcdir" || exit 99

is "$(sed -n '1s/^dscomm (\(.*\)-[^-]*) .*/\1/p' debian/changelog)" \
    "$PACKAGE_VERSION" 'debian/changelog begins with this version'
is "$(sed -n 's/^Version: *//p' contrib/rpm/dscomm.spec)" \
    "$PACKAGE_VERSION" 'the spec file has this version'
is "$(sed -n 's/^ *version("\(.*\)")$/\1/p' contrib/spack/package.py)" \
    "$PACKAGE_VERSION" "Spack's recipe has this version"

# symbols MAP: "name@node" of every line of public nodes
symbols()
{
    awk '/ \{$/ { node = $1 } node !~ /PRIVATE/ && /^ +dscomm_[a-z0-9_]+;$/ {
        sub(";", ""); print $1 "@" node }' "$1" | sort
}

for map in lib/libdscomm.map backends/net/libdscomm-net.map \
    compression/libdscomm-compression.map profiler/libdscomm-profiler.map; do
    library=$(basename "$map" .map)
    symbols "$map" >"$scratch/want"
    sed -n 's/^ \(dscomm_[^ ]*\) .*/\1/p' "debian/${library}0.symbols" |
        sort >"$scratch/got"
    same "$scratch/got" "$scratch/want" "${library}0.symbols has the names of the map"
    # The names of node DSCOMM_0.2 came with 0.2.0.
    awk '/^ [^(]/ { node = $1; sub(/.*_/, "", node); if ($2 != node ".0") print $1, $2 }' \
        "debian/${library}0.symbols" | sort >"$scratch/got"
    same "$scratch/got" /dev/null "${library}0.symbols has the versions of the nodes"
done

# Pages of sections 1 and 3 belong to the program and the functions; pages have links.
{
    for page in doc/*.7.rst; do
        basename "$page" .rst
    done
    sed -n 's/ .*\.7$//p' doc/links
} | sort >"$scratch/want"
sed -n 's|^usr/share/man/man7/||p' debian/*.install | sort >"$scratch/got"
same "$scratch/got" "$scratch/want" 'each page of section 7 is in a package of Debian'
sed -n 's|^%{_mandir}/man7/\(.*\)\*$|\1|p' contrib/rpm/dscomm.spec | sort -u >"$scratch/got"
same "$scratch/got" "$scratch/want" 'and in one of the spec file'

# Modules depend on the library with their ABI, by this name.
abi=$(sed -n 's/^#define DSCOMM_BACKEND_ABI //p' lib/dscomm/backend.h)
grep -rhoE '(dscomm-backend-abi-|\(symver\)DSCOMM_PRIVATE_)[0-9]+' \
    debian/control debian/libdscomm0.symbols | sort >"$scratch/got"
cat >"$scratch/want" <<END
(symver)DSCOMM_PRIVATE_$abi
dscomm-backend-abi-$abi
dscomm-backend-abi-$abi
END
same "$scratch/got" "$scratch/want" 'packages of Debian name the ABI of modules'
tap_done
