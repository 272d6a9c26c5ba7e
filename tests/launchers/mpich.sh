#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# MPICH's mpirun starts the ranks.

. "$abs_top_srcdir/tests/tap.sh"
. "$abs_top_srcdir/tests/launchers/ranks.sh"

command -v mpirun.mpich >/dev/null ||
    skip_all 'no mpirun.mpich (package mpich)'

# Its processes talk over loopback.
# mpirun ARGUMENT...
mpirun()
{
    run mpirun.mpich -localhost localhost "$@"
}

for n in 1 2 4 7; do
    mpirun -n $n "$hello"
    ranks $n "$n ranks"
done
mpirun -n 4 "$digits" "$data"
is "$status $(grep -c '^epoch [0-9]*: loss ' "$scratch/out")" '0 20' digits
timeout -k 5 120 mpirun.mpich -localhost localhost -n 3 "$hello" \
    >"$scratch/other" 2>&1 &
mpirun -n 3 "$hello"
ranks 3 'one of two jobs at once'
wait $!
status=$?
cp "$scratch/other" "$scratch/out"
ranks 3 'the other one'
mpirun -n 2 "$hello" : -n 3 "$hello"
ranks 5 'two programs in one world'
run env MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)) \
    mpirun.mpich -localhost localhost -n 3 "$hello"
ranks 3 'an address and port that are given'
if [ -e "$abs_top_builddir/backends/mpi/.libs/mpich.so" ]; then
    run env DSCOMM_MPI_PATH="$abs_top_builddir/backends/mpi/.libs" \
        mpirun.mpich -localhost localhost -pmi-port -n 2 "$hello"
    ranks 2 'without ranks in the environment, where MPI tells them'
else
    skip 'without ranks in the environment, where MPI tells them' 'no module for it'
fi
run env DSCOMM_BACKEND=shm mpirun.mpich -localhost localhost -pmi-port -n 2 "$hello"
[ "$status" != 0 ]
result $? 'without ranks in the environment'
like "$err" 'PMI_ID=.*-pmi-port' 'without ranks in the environment: what to do'

# What srun needs differs from MPI to MPI.
if [ -e "$abs_top_builddir/backends/mpi/mpich.la" ]; then
    run env DSCOMM_BACKEND=mpi DSCOMM_MPI_LIBRARY=mpich \
        DSCOMM_MPI_PATH="$abs_top_builddir/backends/mpi/.libs" \
        "$dscomm" run -n 2 "$hello"
    [ "$status" != 0 ]
    result $? 'backend mpi without an MPI'
    like "$err" 'no MPI has started the job; .* srun --mpi=pmi2' \
        'backend mpi without an MPI: what to do'
else
    skip 'backend mpi without an MPI' 'configure has found no MPICH'
fi

mpirun -n 4 "$dscomm" env --json
told 4 hydra 'dscomm env'
mpirun -n 3 "$dscomm" env --exec sh -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $MASTER_ADDR'
given 3 'dscomm env --exec'

tap_done
