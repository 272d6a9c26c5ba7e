#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over messages of shm alone, so that every collective is a
# schedule. shm-algorithms.sh has those that are no defaults.

. "$abs_top_srcdir/tests/backends/conform.sh"

DSCOMM_SHM_NATIVE=0
export DSCOMM_SHM_NATIVE
for n in 2 3 5; do
    conform shm $n
done
conform shm 8 collectives reductions variants works stress
tap_done
