#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The backend of torch.distributed, as pip has installed it in this build: what it computes.

. "$abs_top_srcdir/tests/tap.sh"

[ -n "$TORCH_PYTHON" ] || skip_all "${NO_TORCH:-configured without --with-torch=PYTHON}"

# torch finds the backend by itself, by the entry point of the package.
unset DSCOMM_BACKEND
PYTHONPATH=$abs_top_builddir/bindings/site
export PYTHONPATH

# checks_of RANKS SCRIPT: what a script for all ranks has checked
checks_of()
{
    timeout 200 "$TORCH_PYTHON" -m torch.distributed.run --standalone --nproc-per-node "$1" \
        "$abs_top_srcdir/tests/bindings/$2" >"$scratch/out" 2>"$scratch/err"
    status=$?
    sed -n 's/^ok [0-9]* - /1 /p; s/^not ok [0-9]* - /0 /p' "$scratch/out" >"$scratch/checks"
    [ $status = 0 ] && [ -s "$scratch/checks" ]
    result $? "$1 ranks: status of $2" || tail -n 40 "$scratch/err" | sed 's/^/# /'
    while read -r passed name; do
        [ "$passed" = 1 ]
        result $? "$1 ranks: $name" || sed -n 's/^# rank/# &/p' "$scratch/err" | head -n 20
    done <"$scratch/checks"
}

for ranks in 1 2 3 4; do
    checks_of $ranks torch-ranks.py
done
tap_done
