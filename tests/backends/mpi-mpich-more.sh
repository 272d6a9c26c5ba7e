#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite on backend mpi under MPICH: other numbers of ranks,
# blocking calls that are polled for, and small pieces.

. "$abs_top_srcdir/tests/backends/mpi.sh"

use_mpich
more
tap_done
