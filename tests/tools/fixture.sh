# SPDX-License-Identifier: BSD-3-Clause
# For tests of the program dscomm.
# shellcheck shell=sh

. "$abs_top_srcdir/tests/tap.sh"
program=$abs_top_builddir/tools/dscomm

# dscomm WHAT...: its output in $out and $err, its status in $status
dscomm()
{
    out=$("$program" "$@" 2>"$scratch/err")
    status=$?
    err=$(cat "$scratch/err")
}

# perf WHAT...: the same of dscomm perf, with its output in $scratch/out as well
perf()
{
    dscomm perf "$@"
    printf '%s\n' "$out" >"$scratch/out"
}

# rows: the rows of $scratch/out; column N: what they have there, once each
rows()
{
    grep -v '^#' "$scratch/out"
}
column()
{
    rows | awk -v n="$1" '{ print $n }' | sort -u | tr '\n' ' '
}
