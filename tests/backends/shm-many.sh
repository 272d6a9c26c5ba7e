#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Parts of the conformance suite on shm: ranks that far outnumber cores.

. "$abs_top_srcdir/tests/backends/conform.sh"

conform shm 16 variants groups matching receives works threads stress crowd
conform shm 33 groups matching works threads stress
conform shm 64 p2p groups matching threads
tap_done
