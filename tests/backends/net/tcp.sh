#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Groups of backend tcp that end and go on: by deaths, aborts, and ranks that leave.

. "$abs_top_srcdir/tests/backends/conform.sh"

DSCOMM_BACKEND=tcp
export DSCOMM_BACKEND
for area in finalize shrink; do
    "$abs_top_builddir/tests/backends/$area.t" >"$scratch/out" 2>"$scratch/err"
    pass_on tcp
    result $? "$area comes to its end" || sed 's/^/# /' "$scratch/err"
done
tap_done
