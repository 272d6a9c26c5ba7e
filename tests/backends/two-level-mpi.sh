#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite on two levels, shm and mpi, under each mpirun that is
# here and has its module.

. "$abs_top_srcdir/tests/backends/hosts.sh"

DSCOMM_MPI_PATH=$abs_top_builddir/backends/mpi/.libs
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_rmaps_base_oversubscribe=1
OMPI_MCA_plm=isolated
export DSCOMM_MPI_PATH OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
export OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_plm

for library in openmpi mpich; do
    launch=mpirun.$library
    if [ ! -e "$DSCOMM_MPI_PATH/$library.so" ] ||
        ! command -v "$launch" >/dev/null; then
        skip "there is no $launch, or no module for it"
        continue
    fi
    echo "# $launch"
    on aabb
    for hosts in aaab aaabbb abab; do
        on "$hosts" collectives reductions p2p groups aborted
    done
done
tap_done
