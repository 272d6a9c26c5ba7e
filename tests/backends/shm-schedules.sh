#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over messages of shm alone, so that every collective is a
# schedule; then every algorithm, each collective's next one in each turn.

. "$abs_top_srcdir/tests/backends/conform.sh"

DSCOMM_SHM_NATIVE=0
export DSCOMM_SHM_NATIVE
for n in 2 3 5; do
    conform shm $n
done
conform shm 8 collectives reductions variants works stress crowd

# Lines "COLLECTIVE ALGORITHM ALGORITHM..."
"$abs_top_builddir/tools/dscomm" info --algorithms |
    sed -n '/^All algorithms:/,$s/^  \([a-z_]*\)  *\(.*\)/\1 \2/p' | tr -d , \
    >"$scratch/algorithms"
turns=$(awk 'NF - 1 > most { most = NF - 1 } END { print most + 0 }' \
    "$scratch/algorithms")
[ "$turns" -gt 2 ]
result $? 'dscomm info lists algorithms'

# rules TURN: a rule for each collective
rules()
{
    awk -v turn="$1" '{ printf "%s%s:%s", separator, $1, $(2 + turn % (NF - 1))
        separator = "," }' "$scratch/algorithms"
}

turn=0
while [ "$turn" -lt "$turns" ]; do
    DSCOMM_ALGORITHM=$(rules "$turn")
    export DSCOMM_ALGORITHM
    echo "# $DSCOMM_ALGORITHM"
    for n in 3 4; do
        conform shm $n collectives reductions variants
    done
    turn=$((turn + 1))
done
tap_done
