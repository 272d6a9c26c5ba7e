#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite on backend mpi under MPICH: other numbers of ranks,
# blocking calls that are polled for, and small pieces.

. "$abs_top_srcdir/tests/backends/mpi.sh"

use_mpich
for n in 1 4 5; do
    conform mpi $n
done
conform mpi 8 collectives reductions variants p2p groups works
DSCOMM_MPI_BLOCKING=no
export DSCOMM_MPI_BLOCKING
conform mpi 3
unset DSCOMM_MPI_BLOCKING
DSCOMM_MPI_CHUNK=100
export DSCOMM_MPI_CHUNK
conform mpi 3 collectives reductions variants works coalescing
tap_done
