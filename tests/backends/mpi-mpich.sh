#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Backend mpi on MPICH: programs that use MPI as well, and the conformance suite.

. "$abs_top_srcdir/tests/backends/mpi.sh"

use_mpich
test_host
if command -v mpirun.openmpi >/dev/null; then
    use_openmpi
    host=$abs_top_builddir/tests/backends/mpi-host-mpich
    start 2 complain
    like "$err" 'not wired up' "Open MPI's mpirun"
else
    skip 'no mpirun.openmpi'
fi

use_mpich
conform_must_fail mpi 2
for n in 2 3; do
    conform mpi $n
done
tap_done
