#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite on two levels, shm and mpi, under each mpirun that is
# here and has its module.

. "$abs_top_srcdir/tests/backends/mpi.sh"
. "$abs_top_srcdir/tests/backends/hosts.sh"

DSCOMM_MPI_PATH=$abs_top_builddir/backends/mpi/.libs
export DSCOMM_MPI_PATH
# planned TEXT: a blocking call is a plan, one with a work a schedule
planned()
{
    hosts=aab DSCOMM_BACKEND=two_level DSCOMM_SHM_NATIVE=1 DSCOMM_LOG=core:info,two_level:debug \
        DSCOMM_MPI_BLOCKING=yes $launch -n 3 "$conformance" collectives >"$scratch/blocking" 2>&1
    blocking=$?
    hosts=aab DSCOMM_BACKEND=two_level DSCOMM_LOG=core:info $launch -n 3 \
        "$conformance" works >"$scratch/works" 2>&1
    [ "$?$blocking" = 00 ] &&
        grep -q 'collectives in two levels' "$scratch/blocking" &&
        ! grep 'broadcast is a schedule' "$scratch/blocking" &&
        grep -q 'broadcast is a schedule' "$scratch/works"
    result $? "$1"
}

for library in openmpi mpich; do
    if [ ! -e "$DSCOMM_MPI_PATH/$library.so" ] ||
        ! command -v "mpirun.$library" >/dev/null; then
        skip "there is no mpirun.$library, or no module for it"
        continue
    fi
    echo "# $library"
    use_$library
    planned "$library: who plans what"
    on aabb
    on aaab collectives reductions groups
    on aaabbb collectives groups
    DSCOMM_MPI_BLOCKING=yes
    export DSCOMM_MPI_BLOCKING
    on abb collectives reductions groups
    unset DSCOMM_MPI_BLOCKING
done
tap_done
