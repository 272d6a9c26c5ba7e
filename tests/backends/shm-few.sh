#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite on shm: one, two and three ranks.

. "$abs_top_srcdir/tests/backends/conform.sh"

conform_must_fail shm 3
for n in 1 2 3; do
    conform shm $n
done
tap_done
