#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The backend of torch.distributed, as pip has installed it in this build: what it computes.

. "$abs_top_srcdir/tests/tap.sh"
. "$abs_top_srcdir/tests/bindings/site.sh"

for ranks in 1 2 3 4; do
    torchrun $ranks "$programs/torch-ranks.py"
done
torchrun 2 "$programs/torch-parallel.py"
torchrun 4 "$programs/torch-parallel.py"

# A part of PyTorch's own tests; make check-torch runs all.
if has expecttest, hypothesis; then
    suite --list "$programs/torch-suite.quick"
    while IFS="$(printf '\t')" read -r name passed _ reason; do
        [ "$passed" = pass ]
        result $? "PyTorch's $name" || echo "# $passed: $reason"
    done <"$results"
else
    skip "PyTorch's own tests" "$python has no expecttest or hypothesis"
fi
tap_done
