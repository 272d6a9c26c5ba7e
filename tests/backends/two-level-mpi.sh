#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Two levels, shm and mpi, under each mpirun that is here and has its module: what is a
# plan or a schedule, and what auto chooses. The conformance suite is in the matrix.

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

# chosen: the backend that auto takes for three ranks on two hosts
chosen()
{
    # The launcher is a command with arguments.
    # shellcheck disable=SC2086
    hosts=aab DSCOMM_BACKEND=auto DSCOMM_LOG=core:info "$@" $launch -n 3 "$conformance" \
        collectives 2>&1 | sed -n 's/.*: backend \([a-z_]*\) is chosen.*/\1/p'
}

# What auto takes where MPICH's blocking calls are not used
choose()
{
    processor=$(taskset -cp $$ 2>/dev/null | sed 's/.*: //; s/[-,].*//')
    if [ -z "$processor" ]; then
        skip "$1: auto, ranks that share a processor" 'no taskset'
        return
    fi
    oversubscribed=two_level
    [ "$1" != mpich ] || oversubscribed=mpi
    is "$(chosen taskset -c "$processor")" $oversubscribed "$1: auto, ranks that share a processor"
    DSCOMM_MPI_BLOCKING=yes
    export DSCOMM_MPI_BLOCKING
    is "$(chosen taskset -c "$processor")" two_level "$1: auto, blocking calls all the same"
    DSCOMM_MPI_BLOCKING=no
    is "$(chosen taskset -c "$processor")" mpi "$1: auto, none in any case"
    unset DSCOMM_MPI_BLOCKING
    if [ "$(nproc)" -ge 3 ]; then
        is "$(chosen env)" two_level "$1: auto, a processor for each rank"
    else
        skip "$1: auto, a processor for each rank" 'there are fewer'
    fi
}

# levelled TEXT: works of so many ranks are on two levels, of those collectives
# whose first call is short
levelled()
{
    hosts=aaabbb DSCOMM_BACKEND=two_level DSCOMM_LOG=core:info $launch -n 6 \
        "$conformance" works >"$scratch/levels" 2>&1
    status=$?
    for name in all_reduce broadcast reduce reduce_scatter barrier; do
        grep -q "$name is a schedule .* (two_level)" "$scratch/levels" ||
            status="$status, no $name"
    done
    [ "$status" = 0 ]
    result $? "$1" || echo "# $status"
}

for library in openmpi mpich; do
    use_if_present $library || continue
    planned "$library: who plans what"
    choose $library
    levelled "$library: works on two levels"
done
tap_done
