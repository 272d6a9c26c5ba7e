#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Parts of the conformance suite on shm: ranks that far outnumber cores.

. "$abs_top_srcdir/tests/backends/conform.sh"

for n in 16 33 64; do
    conform shm $n variants groups matching works threads stress
done
tap_done
