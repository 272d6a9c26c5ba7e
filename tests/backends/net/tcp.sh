#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Worlds of backend tcp that end, in order and by deaths, and go on.

. "$abs_top_srcdir/tests/backends/conform.sh"

DSCOMM_BACKEND=tcp
export DSCOMM_BACKEND
for area in finalize shrink; do
    "$abs_top_builddir/tests/backends/$area.t" >"$scratch/out" 2>"$scratch/err"
    pass_on tcp
    result $? "$area comes to its end" || sed 's/^/# /' "$scratch/err"
done
tap_done
