#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each room includes headers only of the rooms that are below it.

. "$abs_top_srcdir/tests/tap.sh"

# A room, and the rooms or the single headers that it may include. Public headers and a
# room's own are free for all.
cat >"$scratch/rooms" <<'END'
lib/base
lib/store           lib/base
lib/reduce          lib/base
lib/device          lib/base
lib/module          lib/base lib/device
lib/recorder        lib/base
lib/rendezvous      lib/base lib/store lib/module env
lib/group           lib/base lib/store lib/reduce lib/device lib/module lib/recorder lib/rendezvous env
lib/work            lib/base lib/store lib/reduce lib/device lib/module lib/recorder lib/rendezvous lib/group
lib/diagnosis       lib/base lib/store lib/reduce lib/device lib/module lib/recorder lib/rendezvous lib/group lib/work
lib/schedule        lib/base lib/store lib/reduce lib/device lib/module lib/recorder lib/rendezvous lib/group lib/work lib/diagnosis
lib/call            lib/base lib/store lib/reduce lib/device lib/module lib/recorder lib/rendezvous lib/group lib/work lib/diagnosis lib/schedule env
env                 lib/base
backends            lib/base/kernel.h
compression         lib/base
profiler            lib/base
tools               lib/base lib/recorder lib/rendezvous env
examples
END

# includes: "FILE HEADER" of each include of a header of this tree
includes()
{
    cd "$abs_top_srcdir" &&
        grep -rEo --include='*.[ch]' '^#include "(lib|env|backends|compression|profiler|tools)/[^"]+"' \
            lib env backends compression profiler tools examples |
        sed 's/:#include "/ /; s/"$//'
}

# Prints "FILE HEADER" of each include that is not allowed.
arrows()
{
    awk '
    function room(path)
    {
        if (path ~ /^lib\/[^\/]+\//)
            return substr(path, 1, 3 + index(substr(path, 5), "/"))
        return substr(path, 1, index(path, "/") - 1)
    }
    FILENAME == ARGV[1] { for (i = 2; i <= NF; i++) may[$1, $i] = 1; next }
    {
        from = room($1); to = room($2)
        if (to == "lib/dscomm" || from == to || (from, to) in may || (from, $2) in may)
            next
        print $1, $2
    }' "$scratch/rooms" -
}

includes >"$scratch/includes"
[ "$(wc -l <"$scratch/includes")" -gt 300 ]
result $? 'the includes of the tree are found'
arrows <"$scratch/includes" >"$scratch/up"
is "$(cat "$scratch/up")" '' 'no room includes a header of a room above it'
is "$(echo lib/base/log.c lib/group/group.h | arrows)" 'lib/base/log.c lib/group/group.h' \
    'an arrow up is found'
is "$(echo backends/shm/shm.c lib/base/log.h | arrows)" 'backends/shm/shm.c lib/base/log.h' \
    'a header beside the one that backends may include is found'
cd "$abs_top_srcdir" && find lib env backends compression profiler tools tests -name '*.c' -o -name '*.sh' | sed 's,/[^/]*$,,' | sort -u |
    while read -r room; do
        [ -s "$room/README.md" ] && [ "$(wc -l <"$room/README.md")" -le 10 ] || echo "$room"
    done >"$scratch/silent"
is "$(cat "$scratch/silent")" '' 'each folder with sources has a README.md of at most ten lines'
tap_done
