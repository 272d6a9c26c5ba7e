#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Collectives on shm without its own: every algorithm that there is on one node, in
# turn.

. "$abs_top_srcdir/tests/backends/conform.sh"

DSCOMM_SHM_NATIVE=0
export DSCOMM_SHM_NATIVE

# "  all_gather  ring, linear, ..." as "all_gather ring linear ..."
"$abs_top_builddir/tools/dscomm" info --algorithms |
    sed -e '1,/^All algorithms/d' -e 's/,//g' -e 's/^ *//' -e 's/ two_level//' \
        >"$scratch/list"
[ -s "$scratch/list" ]
result $? 'dscomm info lists the algorithms'

# The n-th algorithm of each collective that has so many, as rules.
rules()
{
    while read -r collective names; do
        # shellcheck disable=SC2086
        set -- "$1" $names
        [ $# -gt "$1" ] && eval "printf '%s:%s,' $collective \${$(($1 + 1))}"
    done <"$scratch/list"
    :
}

number=1
while DSCOMM_ALGORITHM=$(rules $number) && [ -n "$DSCOMM_ALGORITHM" ]; do
    export DSCOMM_ALGORITHM
    echo "# DSCOMM_ALGORITHM=$DSCOMM_ALGORITHM"
    for n in 3 4; do
        conform shm $n collectives variants reductions operators
    done
    number=$((number + 1))
done
[ $number -gt 4 ]
result $? "$((number - 1)) algorithms of a collective were tried"
tap_done
