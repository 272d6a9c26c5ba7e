#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Open MPI's mpirun starts the ranks.

. "$abs_top_srcdir/tests/tap.sh"
. "$abs_top_srcdir/tests/launchers/ranks.sh"

command -v mpirun.openmpi >/dev/null ||
    skip_all 'no mpirun.openmpi (package openmpi-bin)'
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
# It wants a remote shell to be there, though it will not use one.
OMPI_MCA_plm_rsh_agent=sh
export OMPI_MCA_plm_rsh_agent

# mpirun ARGUMENT...
mpirun()
{
    run mpirun.openmpi --oversubscribe --bind-to none "$@"
}

for n in 1 2 4 7; do
    mpirun -n $n "$hello"
    ranks $n "$n ranks"
done
mpirun -n 4 "$digits" "$data"
is "$status $(grep -c '^epoch [0-9]*: loss ' "$scratch/out")" '0 20' digits

# Two jobs at once, which must not meet
timeout -k 5 120 mpirun.openmpi --oversubscribe -n 3 "$hello" \
    >"$scratch/other" 2>&1 &
mpirun -n 3 "$hello"
ranks 3 'one of two jobs at once'
wait $!
status=$?
cp "$scratch/other" "$scratch/out"
ranks 3 'the other one'

# What is set stays, and is believed where it agrees.
run env RANK=0 WORLD_SIZE=1 mpirun.openmpi --oversubscribe -n 2 "$hello"
[ "$status" != 0 ]
result $? 'ranks left over from another job are no ranks of this one'
# Of rank 0 or of rank 1: mpirun may end the job before it has both
like "$err" "RANK='0'.*OMPI_COMM_WORLD_RANK='1'|WORLD_SIZE='1'.*OMPI_COMM_WORLD_SIZE='2'" \
    'both sides are named'
run env MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)) \
    mpirun.openmpi --oversubscribe -n 3 "$hello"
ranks 3 'an address and port that are given'
mpirun -n 1 true : -n 1 true
if [ "$status" = 139 ]; then # Open MPI 5.0.7
    skip 'two programs in one world' 'mpirun itself has a segmentation fault'
else
    mpirun -n 2 "$hello" : -n 3 "$hello"
    ranks 5 'two programs in one world'
fi

mpirun -n 4 "$dscomm" env --json
told 4 openmpi 'dscomm env'
mpirun -n 3 "$dscomm" env --exec sh -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $MASTER_ADDR'
given 3 'dscomm env --exec'

tap_done
