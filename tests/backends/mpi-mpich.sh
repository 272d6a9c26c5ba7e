#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Backend mpi on MPICH: programs that use MPI as well.

. "$abs_top_srcdir/tests/backends/mpi.sh"

use_mpich
test_host
if command -v mpirun.openmpi >/dev/null; then
    use_openmpi
    host=$abs_top_builddir/tests/backends/mpi-host-mpich
    start 2 complain
    like "$err" 'not wired up' "Open MPI's mpirun"
else
    skip "Open MPI's mpirun" 'no mpirun.openmpi'
fi

# MPICH's blocking calls never give way, and so are for ranks with a processor
# each: of those that they may run on.
# blocking_calls COMMAND...: which way two ranks go
blocking_calls()
{
    DSCOMM_BACKEND=mpi DSCOMM_LOG=mpi:info "$@" -n 2 \
        "$abs_top_builddir/examples/hello/hello" 2>&1 |
        sed -n 's/.*blocking collectives are \([^,]*\).*/\1/p'
}
use_mpich
mine=$(taskset -cp $$ 2>/dev/null | sed 's/.*: //')
if [ -n "$mine" ]; then
    # shellcheck disable=SC2086
    is "$(blocking_calls taskset -c "${mine%%[-,]*}" $launch)" \
        'schedules over messages' 'two ranks on one processor of several'
else
    skip 'two ranks on one processor of several' 'no taskset'
fi
if [ "$(nproc)" -gt 1 ]; then
    # shellcheck disable=SC2086
    is "$(blocking_calls $launch)" "MPI's own" 'two ranks on several processors'
    # shellcheck disable=SC2086
    is "$(blocking_calls $launch -bind-to hwthread)" "MPI's own" \
        'two ranks bound to a processor each'
else
    skip 'two ranks on several processors' 'there is one'
fi

# Where the launcher seems to be Open MPI's, whose module cannot be loaded
mkdir "$scratch/half"
: >"$scratch/half/openmpi.so"
ln -s "$abs_top_builddir/backends/mpi/.libs/mpich.so" "$scratch/half"
cat >"$scratch/alike" <<'SCRIPT'
#!/bin/sh
export OMPI_COMM_WORLD_SIZE=$PMI_SIZE OMPI_COMM_WORLD_RANK=$PMI_RANK \
    OMPI_COMM_WORLD_LOCAL_SIZE=$PMI_SIZE OMPI_COMM_WORLD_LOCAL_RANK=$PMI_RANK
exec "$@"
SCRIPT
chmod +x "$scratch/alike"
# shellcheck disable=SC2086
DSCOMM_MPI_PATH=$scratch/half DSCOMM_BACKEND=mpi $launch -n 2 "$scratch/alike" \
    "$abs_top_builddir/examples/hello/hello" >"$scratch/out" 2>"$scratch/err"
is "$(said 'the sum of all ranks is 1')" 2 'the first module that can be loaded'
like "$(cat "$scratch/err")" 'openmpi.so.*; trying mpich' 'and a word on the other'

tap_done
