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
if command -v mpirun >/dev/null && "$TORCH_PYTHON" -c 'from mpi4py import MPI' >/dev/null 2>&1; then
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
    checks 'mpi4py' mpirun -n 3 "$TORCH_PYTHON" "$programs/torch-mpi4py.py"
else
    skip 'mpi4py' "no mpirun, or $TORCH_PYTHON has no mpi4py for it"
fi
tap_done
