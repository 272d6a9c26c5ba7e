#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite on shm: one, two and three ranks, and what waits once
# more with a progress thread.

. "$abs_top_srcdir/tests/backends/conform.sh"

conform_must_fail shm 3
for n in 1 2 3; do
    conform shm $n
done
DSCOMM_PROGRESS=thread
export DSCOMM_PROGRESS
conform shm 3 p2p matching receives works coalescing hooks threads stress crowd
tap_done
