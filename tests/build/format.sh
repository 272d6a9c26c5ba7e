#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The sources are as clang-format leaves them.

. "$abs_top_srcdir/tests/tap.sh"

# Its output changes from release to release.
version=$("$CLANG_FORMAT" --version 2>/dev/null |
    sed -n 's/.*version \([0-9]*\)\..*/\1/p')
[ -n "$version" ] || skip_all 'no clang-format'
[ "$version" = 14 ] || skip_all "clang-format $version is not 14"

unset MAKEFLAGS MFLAGS MAKELEVEL
"$MAKE" -s -C "$abs_top_builddir" check-format >"$scratch/log" 2>&1
result $? 'make check-format' || sed -n '1,40s/^/# /p' "$scratch/log"
tap_done
