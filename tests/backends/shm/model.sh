#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The protocol of steps, in all interleavings: see steps.pml. Faults of the model must be found.

. "$abs_top_srcdir/tests/tap.sh"

model=$abs_top_srcdir/tests/backends/shm/steps.pml
command -v spin >/dev/null || skip_all 'no spin'
cd "$scratch" || exit 1

# explore DEFINE...: writes what is found to $out
explore()
{
    out=$(spin -a "$@" "$model" 2>&1 && $CC -O2 -DSAFETY -o pan pan.c 2>&1 &&
        ./pan -m100000 -w24 2>&1) || :
}

for kind in FLAT PIPELINED IN_PLACE; do
    for ranks in 2 3; do
        for revoke in '' -DREVOKE; do
            explore -DKIND=$kind -DRANKS=$ranks $revoke
            states=$(echo "$out" | awk '/states, stored/ { print $1 }')
            like "$out" 'errors: 0$' "$kind, $ranks ranks${revoke:+, revoked at any time}"
            echo "# $states states"
            if echo "$out" | grep -q 'search depth too small'; then
                result 1 'the whole space was searched'
            fi
        done
    done
done
while read -r defines; do
    # Split on purpose: one word a define.
    # shellcheck disable=SC2086
    explore $defines
    like "$out" 'errors: 1$' "a fault is found: $defines"
done <<'END'
-DKIND=FLAT -DLATE -DLINES=1
-DKIND=PIPELINED -DLATE -DRANKS=3
-DKIND=FLAT -DEARLY
-DKIND=IN_PLACE -DNO_STAY
-DKIND=PIPELINED -DPIECES=3 -DAHEAD=3
END
tap_done
