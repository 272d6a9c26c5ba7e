#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The first program of README.md is the example that is built here, and the news
# begin with this version.

. "$abs_top_srcdir/tests/tap.sh"

sed -n '/^```c$/,/^```$/{/^```/d;p;}' "$abs_top_srcdir/README.md" >"$scratch/got"
cmp "$scratch/got" "$abs_top_srcdir/examples/hello/hello.c" 1>&2
result $? 'the first program is examples/hello/hello.c'

is "$(head -n 1 "$abs_top_srcdir/NEWS")" "dscomm $PACKAGE_VERSION" \
    'NEWS begins with this version'
tap_done
