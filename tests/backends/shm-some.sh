#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite on shm: four and five ranks.

. "$abs_top_srcdir/tests/backends/conform.sh"

for n in 4 5; do
    conform shm $n
done
tap_done
