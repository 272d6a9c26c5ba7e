#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The example messages on 1 to 4 ranks: the walks of all ranks are 2 to the power of
# the steps, and each cell has a binomial coefficient.

. "$abs_top_srcdir/tests/tools/fixture.sh"

messages=$abs_top_builddir/examples/messages/messages
DSCOMM_TIMEOUT=60
export DSCOMM_TIMEOUT

# walk RANKS ARGUMENT...
walk()
{
    ranks=$1
    shift
    dscomm run -n "$ranks" --timeout 100 "$messages" "$@"
}

# walks: those of all ranks together
walks()
{
    echo "$out" | sed -n 's/^rank [0-9]*: \([0-9]*\) walks, 0 wrong cells$/\1/p' \
        >"$scratch/counts"
    sum=0
    # Numbers of 64 bits, which awk would round
    while read -r count; do
        sum=$((sum + count))
    done <"$scratch/counts"
    echo "$sum"
}

for n in 1 2 3 4; do
    walk $n
    is $status 0 "$n ranks: status"
    is "$(echo "$out" | grep -c .)" $n "$n ranks: a line for each"
    is "$(walks)" 1048576 "$n ranks: 20 steps"
    walk $n 60
    is "$status $(walks)" '0 1152921504606846976' "$n ranks: 60 steps"
done

# From cell 0, the first step leads to cell 1 of rank 0 and to the last cell of rank 3.
walk 4 1
is "$(echo "$out" | sort)" 'rank 0: 1 walks, 0 wrong cells
rank 1: 0 walks, 0 wrong cells
rank 2: 0 walks, 0 wrong cells
rank 3: 1 walks, 0 wrong cells' 'one step'

for wrong in 0 61 -1 x 3x '' '20 20'; do
    # Arguments are words on purpose.
    # shellcheck disable=SC2086
    "$messages" ${wrong:-''} >"$scratch/out" 2>"$scratch/err"
    is "$? $(grep -c '^usage: messages' "$scratch/err")" '2 1' "usage: $wrong"
done
tap_done
