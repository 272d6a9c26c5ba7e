#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Worlds of backend tcp that end, in order and by deaths.

. "$abs_top_srcdir/tests/backends/conform.sh"

DSCOMM_BACKEND=tcp
export DSCOMM_BACKEND
"$abs_top_builddir/tests/backends/finalize.t" >"$scratch/out" 2>"$scratch/err"
pass_on tcp
result $? "finalize comes to its end" || sed 's/^/# /' "$scratch/err"
tap_done
