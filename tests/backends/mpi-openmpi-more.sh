#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite on backend mpi under Open MPI: other numbers of ranks,
# blocking calls that are polled for, and small pieces.

. "$abs_top_srcdir/tests/backends/mpi.sh"

use_openmpi
more
tap_done
