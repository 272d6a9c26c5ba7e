#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite on shm: eight ranks, more than most cores.

. "$abs_top_srcdir/tests/backends/conform.sh"

conform shm 8
tap_done
