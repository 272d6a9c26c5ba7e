#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The optimizers of the examples, step by step, against the same written with
# NumPy after their papers.

. "$abs_top_srcdir/tests/tap.sh"

program=$abs_top_srcdir/tests/examples/optimizers.py
steps=$abs_top_builddir/tests/examples/optimizers
PYTHONDONTWRITEBYTECODE=1 # in the folder of the sources
export PYTHONDONTWRITEBYTECODE
# One that is found first may be somebody's own, without NumPy.
for python in python3 /usr/bin/python3; do
    "$python" -c 'import numpy' 2>/dev/null && break
    python=
done
[ "$python" ] || skip_all 'no NumPy for python3'

# compare METHOD N [VARIABLE=VALUE...]
compare()
{
    method=$1 n=$2
    shift 2
    "$python" "$program" write "$method" "$n" "$scratch/in" &&
        env "$@" timeout -k 5 100 "$abs_top_builddir/tools/dscomm" run -n "$n" \
            "$steps" "$scratch/in" "$scratch/out" >"$scratch/log" 2>&1 &&
        "$python" "$program" check "$method" "$n" "$scratch/out" \
            >>"$scratch/log" 2>&1
    result $? "$method on $n ranks $*"
    sed 's/^/# /' "$scratch/log"
}

for method in onebit-adam onebit-lamb zero-one-adam; do
    for n in 1 2 4; do
        compare "$method" $n
    done
    compare "$method" 4 DSCOMM_CPU=c DSCOMM_SHM_NATIVE=0
done
for method in onebit-adam zero-one-adam; do
    compare "$method+layers" 4
done
tap_done
