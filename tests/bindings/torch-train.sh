#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The backend of torch.distributed in programs that train: hooks, ranks that fail, launch lines,
# packages beside it, and the examples.

. "$abs_top_srcdir/tests/tap.sh"
. "$abs_top_srcdir/tests/bindings/site.sh"

if has numpy; then
    for ranks in 1 2 3; do
        torchrun $ranks "$programs/torch-hooks.py"
    done
else
    skip 'hooks' "$python has no numpy"
fi
checks 'a rank that fails' "$python" "$programs/torch-killed.py"

# Beside other packages
if has deepspeed; then
    torchrun 2 "$programs/torch-deepspeed.py" gloo "$scratch/losses"
    torchrun 2 "$programs/torch-deepspeed.py" dscomm "$scratch/losses"
else
    skip 'DeepSpeed' "$python has no deepspeed"
fi
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
if command -v mpirun >/dev/null && has mpi4py.MPI; then
    checks 'mpi4py' mpirun -n 3 "$python" "$programs/torch-mpi4py.py"
else
    skip 'mpi4py' "no mpirun, or $python has no mpi4py for it"
fi

# Launch lines, and jobs that they start
checks 'launch lines' "$python" "$programs/torch-run.py"
PATH=$abs_top_builddir/tools:$PATH
checks 'dscomm run by dscomm_torch.run' "$python" -m dscomm_torch.run --exec -n 2 \
    "$programs/torch-ranks.py"
if command -v mpirun >/dev/null; then
    checks 'dscomm_torch.run by mpirun' mpirun -n 2 "$python" -m dscomm_torch.run --exec \
        "$programs/torch-ranks.py"
else
    skip 'dscomm_torch.run by mpirun' 'no mpirun'
fi

# The examples learn the same by gloo. Sums of three ranks may be in another order.
for example in ddp fsdp2 pipeline; do
    for ranks in 2 3; do
        for backend in gloo dscomm; do
            timeout 200 "$python" -m torch.distributed.run --standalone --nproc-per-node $ranks \
                "$abs_top_srcdir/examples/torch/$example.py" --backend $backend --epochs 3 \
                2>"$scratch/err.$backend" | sed -n 's/^loss of the last epoch: //p'
        done >"$scratch/losses"
        awk '{ loss[NR] = $1 } END {
            d = loss[1] - loss[2]
            exit !(NR == 2 && loss[1] > 0 && loss[1] < 2 && d < 1e-4 && d > -1e-4)
        }' "$scratch/losses"
        result $? "$example.py, $ranks ranks: the loss of gloo" ||
            cat "$scratch/losses" "$scratch"/err.* | tail -n 40 | sed 's/^/# /'
    done
done
tap_done
