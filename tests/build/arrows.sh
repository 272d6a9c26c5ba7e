#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each room includes headers only of the rooms that are below it.

. "$abs_top_srcdir/tests/tap.sh"

# A room, and the rooms of which it may include headers. Public headers and a room's
# own are free for all.
cat >"$scratch/rooms" <<'END'
lib/base
lib/store           lib/base
lib/module          lib/base lib/store
lib/reduce          lib/base lib/store
lib/device          lib/base lib/store
lib/rendezvous      lib/base lib/store env
lib/group           lib/base lib/store lib/module lib/reduce lib/device lib/rendezvous env
lib/work            lib/base lib/store lib/module lib/reduce lib/device lib/rendezvous lib/group
lib/schedule        lib/base lib/store lib/module lib/reduce lib/device lib/rendezvous lib/group lib/work lib/diagnosis
lib/diagnosis       lib/base lib/store lib/module lib/reduce lib/device lib/rendezvous lib/group lib/work
lib/call            lib/base lib/store lib/module lib/reduce lib/device lib/rendezvous lib/group lib/work lib/schedule lib/diagnosis env
env                 lib/base
backends
compression         lib/base
tools               lib/base env
examples
END

# Includes that still go up. Nothing may be added here.
cat >"$scratch/known" <<'END'
lib/group/group.c lib/call/coalesce.h
lib/group/group.c lib/work/event.h
lib/group/group.c lib/work/progress.h
lib/group/group.c lib/call/receive.h
lib/group/group.h lib/diagnosis/history.h
lib/group/group.h lib/schedule/choice.h
lib/group/group.h lib/schedule/cache.h
lib/module/module.c lib/device/device.h
lib/module/choose.c lib/rendezvous/roster.h
lib/module/choose.c lib/rendezvous/processors.h
lib/work/deadline.c lib/diagnosis/diagnosis.h
lib/work/deadline.c lib/schedule/early.h
lib/work/deadline.c lib/call/receive.h
lib/work/work.c lib/call/fusion.h
lib/work/work.c lib/diagnosis/diagnosis.h
lib/work/work.c lib/call/receive.h
lib/store/tcp/stopped-server.c lib/rendezvous/stopped.h
lib/base/describe.c lib/call/agree.h
lib/base/op.c lib/call/check.h
lib/base/describe.c lib/call/check.h
lib/base/describe.c lib/schedule/header.h
lib/base/process.c lib/work/helper.h
lib/base/process.c lib/work/hook.h
lib/base/process.c lib/module/module.h
lib/base/process.c lib/work/progress.h
lib/base/process.c lib/rendezvous/rendezvous.h
lib/base/process.c lib/group/world.h
lib/base/interface.c lib/store/tcp/socket.h
lib/rendezvous/rendezvous.h lib/module/module.h
lib/device/stage.h lib/work/work.h
env/env.c lib/module/info.h
compression/device/module.c lib/device/device.h
compression/device/part.c lib/device/device.h
END

# includes: "FILE HEADER" of each include of a header of this tree
includes()
{
    cd "$abs_top_srcdir" &&
        grep -rEo --include='*.[ch]' '^#include "(lib|env|backends|compression|tools)/[^"]+"' \
            lib env backends compression tools examples |
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
    FILENAME == ARGV[1] { known[$1] = 1; for (i = 2; i <= NF; i++) may[$1, $i] = 1; next }
    FILENAME == ARGV[2] { forgiven[$1, $2] = 1; next }
    {
        from = room($1); to = room($2)
        if (to == "lib/dscomm" || from == to || (from, to) in may || ($1, $2) in forgiven)
            next
        print $1, $2
    }' "$scratch/rooms" "$scratch/known" -
}

includes >"$scratch/includes"
[ "$(wc -l <"$scratch/includes")" -gt 300 ]
result $? 'the includes of the tree are found'
arrows <"$scratch/includes" >"$scratch/up"
is "$(cat "$scratch/up")" '' 'no room includes a header of a room above it'
is "$(echo lib/base/log.c lib/group/group.h | arrows)" 'lib/base/log.c lib/group/group.h' \
    'an arrow up is found'
while read -r file header; do
    grep -qx "$file $header" "$scratch/includes"
    result $? "still there: $file includes $header" || echo '# remove its line'
done <"$scratch/known"
cd "$abs_top_srcdir" && find lib env backends compression tools -name '*.c' | sed 's,/[^/]*$,,' | sort -u |
    while read -r room; do
        [ -s "$room/README.md" ] && [ "$(wc -l <"$room/README.md")" -le 10 ] || echo "$room"
    done >"$scratch/silent"
is "$(cat "$scratch/silent")" '' 'each folder with sources has a README.md of at most ten lines'
tap_done
