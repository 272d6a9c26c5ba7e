#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The example mesh on 1 to 4 ranks, which have each coordinate once.

. "$abs_top_srcdir/tests/tools/fixture.sh"

mesh=$abs_top_builddir/examples/mesh/mesh
DSCOMM_TIMEOUT=60
export DSCOMM_TIMEOUT

# right RANKS PARTS ARGUMENT...: rank is replica * PARTS + part
right()
{
    n=$1 parts=$2
    shift 2
    rank=0
    while [ $rank -lt "$n" ]; do
        echo "rank $rank is part $((rank % parts)) of $parts in replica" \
            "$((rank / parts)) of $((n / parts)), and has 0 wrong results"
        rank=$((rank + 1))
    done >"$scratch/want"
    dscomm run -n "$n" --timeout 100 "$mesh" "$@"
    echo "$out" | sort >"$scratch/got"
    is $status 0 "$n ranks $*: status"
    same "$scratch/got" "$scratch/want" "$n ranks $*: coordinates and results"
}

right 1 1
right 2 2
right 3 1
right 4 2
right 2 1 1
right 3 3 3
right 4 1 1
right 4 4 4

dscomm run -n 4 --timeout 100 "$mesh" 3
is $status 1 '3 parts of 4 ranks: status'
like "$err" '^[^ ]*mesh\.c:.* dims ' '3 parts of 4 ranks: the sentence'

for wrong in 0 -1 x 2x 99999999999 '' '2 2'; do
    # Arguments are words on purpose.
    # shellcheck disable=SC2086
    "$mesh" ${wrong:-''} >"$scratch/out" 2>"$scratch/err"
    is "$? $(grep -c '^usage: mesh' "$scratch/err")" '2 1' "usage: $wrong"
done
tap_done
