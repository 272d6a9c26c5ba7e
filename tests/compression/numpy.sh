#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# 200 random cases of 1-bit all-reduce, against the same written with NumPy.

. "$abs_top_srcdir/tests/tap.sh"

program=$abs_top_srcdir/tests/compression/model.py
cases=$abs_top_builddir/tests/compression/cases
# One that is found first may be somebody's own, without NumPy.
for python in python3 /usr/bin/python3; do
    "$python" -c 'import numpy' 2>/dev/null && break
    python=
done
[ "$python" ] || skip_all 'no NumPy for python3'

# compare N CASES [VARIABLE=VALUE...]
compare()
{
    n=$1 number=$2
    shift 2
    "$python" "$program" write "$n" 2102 "$number" "$scratch/in" &&
        env "$@" timeout -k 5 100 "$abs_top_builddir/tools/dscomm" run -n "$n" \
            "$cases" "$scratch/in" "$scratch/out" >"$scratch/log" 2>&1 &&
        "$python" "$program" check "$n" 2102 "$number" "$scratch/out" \
            >>"$scratch/log" 2>&1
    result $? "$number cases on $n ranks $*" || sed 's/^/# /' "$scratch/log"
}

for n in 1 2 3 4 5; do
    compare "$n" 40
done
compare 8 20 DSCOMM_CPU=avx2
compare 3 20 DSCOMM_CPU=c
compare 4 20 DSCOMM_SHM_NATIVE=0
tap_done
