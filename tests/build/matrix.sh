#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each row of the matrix of the conformance suite belongs to a test of the Makefile, and
# each of these tests has rows.

. "$abs_top_srcdir/tests/tap.sh"

awk '/^[a-z]/ { print "tests/backends/" $1 ".rows" }' \
    "$abs_top_srcdir/tests/backends/matrix" | sort -u >"$scratch/rows"
grep -o 'tests/backends/[a-z-]*\.rows' "$abs_top_srcdir/tests/Makemodule.am" |
    sort -u >"$scratch/tests"
[ -s "$scratch/rows" ]
result $? 'the matrix has rows'
same "$scratch/tests" "$scratch/rows" 'they are the tests of the Makefile'
tap_done
