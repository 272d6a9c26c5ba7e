#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Random cases of 1-bit all-reduce, against DeepSpeed's own class.

. "$abs_top_srcdir/tests/tap.sh"

program=$abs_top_srcdir/tests/compression/deepspeed.py
cases=$abs_top_builddir/tests/compression/cases
python=${TEST_PYTHON:-python3}
source=${TEST_DEEPSPEED-}
[ -z "${NO_TORCH-}" ] || skip_all "$NO_TORCH"
"$python" -c 'import numpy, torch' 2>/dev/null ||
    skip_all "no PyTorch for $python; ./bootstrap check --with-torch gets it"
[ -f "$source" ] ||
    skip_all 'no source of DeepSpeed; ./bootstrap check --with-torch gets it'
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

for n in 1 2 3 4 5 8; do
    "$python" "$program" write $n 2104 60 "$scratch/in" >"$scratch/log" 2>&1 &&
        timeout -k 5 100 "$abs_top_builddir/tools/dscomm" run -n $n "$cases" \
            "$scratch/in" "$scratch/out" >>"$scratch/log" 2>&1 &&
        "$python" "$program" check $n 2104 60 "$scratch/out" "$source" \
            >>"$scratch/log" 2>&1
    result $? "$n ranks" || sed 's/^/# /' "$scratch/log"
done
tap_done
