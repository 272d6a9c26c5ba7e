#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Settings of shm that differ between ranks, of which one tries its stores and the other does not.

. "$abs_top_srcdir/tests/tap.sh"

export DSCOMM_BACKEND=shm DSCOMM_BACKEND_PATH="$abs_top_builddir/backends/.libs"
export DSCOMM_SHM_RING=512K # so that there are trials

# differ SETTING=VALUE: rank 0 has it
differ()
{
    # Expanded by the shell of each rank.
    # shellcheck disable=SC2016
    out=$("$abs_top_builddir/tools/dscomm" run -n 2 sh -c \
        'setting=$1 && shift && [ "$RANK" = 1 ] || export "$setting"; exec "$@"' sh "$1" \
        "$abs_top_builddir/tests/backends/conformance" collectives reductions p2p 2>&1)
    like "$out" '^1\.\.[1-9]' "rank 0 has $1"
    is "$(echo "$out" | grep -c '^not ok')" 0 'with the right results'
}

differ DSCOMM_SHM_STORE=plain
differ DSCOMM_SHM_STORE=stream
differ DSCOMM_SHM_SPIN=0
differ DSCOMM_SHM_SINGLE_COPY=no
differ DSCOMM_SHM_SINGLE_COPY=yes
tap_done
