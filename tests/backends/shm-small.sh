#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite on shm with rings and channels as small as can be: they
# are full all the time, and every place in them is used again and again.

. "$abs_top_srcdir/tests/backends/conform.sh"

export DSCOMM_SHM_RING=4K DSCOMM_SHM_CHANNEL=4K
for n in 2 3; do
    conform shm $n collectives reductions variants p2p matching receives works
done
tap_done
