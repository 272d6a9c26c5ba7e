#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tests/gpu/run says why it cannot check anything here, and fails where it must.

. "$abs_top_srcdir/tests/tap.sh"

unset DSCOMM_REQUIRE_CUDA
said=$("$abs_top_srcdir/tests/gpu/run" "$abs_top_builddir" 10 2>&1)
status=$?
[ "$status" -gt 1 ] || skip_all 'there is a GPU: tests/gpu/run checks it'
is $status 77 'nothing is checked'
like "$said" '^no GPU: .' "$said"
said=$(DSCOMM_REQUIRE_CUDA=1 "$abs_top_srcdir/tests/gpu/run" \
    "$abs_top_builddir" 10 2>&1)
is $? 1 'where a GPU is required, there is none'
tap_done
