#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# C in the manual compiles: every literal block of a SYNOPSIS, whose declarations
# must be those of the headers, and of an EXAMPLE.

. "$abs_top_srcdir/tests/tap.sh"

# blocks PAGE: its C as $scratch/1.c, 2.c, ...
blocks()
{
    rm -f "$scratch"/*.c
    awk -v folder="$scratch" '
        # A section begins at a line that is underlined by "=".
        /^=+$/ { wanted = before ~ /^(SYNOPSIS|EXAMPLE)$/; literal = 0 }
        /^[^ ]/ { literal = 0 }
        literal { sub("^    ", ""); print >(folder "/" n ".c") }
        /::$/ && wanted { literal = 1; n++ }
        { before = $0 }' "$1"
}

# Flags are words on purpose.
# shellcheck disable=SC2086
for page in "$abs_top_srcdir"/doc/*.3.rst "$abs_top_srcdir"/doc/*.7.rst; do
    blocks "$page"
    for block in "$scratch"/*.c; do
        [ -e "$block" ] || continue
        $CC -std=gnu11 -Wall -Wextra -Werror -I"$abs_top_srcdir/lib" \
            -I"$abs_top_srcdir/compression" -I"$abs_top_srcdir/profiler" \
            -I"$abs_top_srcdir/backends/net" -fsyntax-only "$block" 1>&2
        result $? "$(basename "$page" .rst): block $(basename "$block" .c)"
    done
done

# Of what the headers declare, no more and no less
cat "$abs_top_srcdir"/doc/*.3.rst |
    sed -n '/^SYNOPSIS$/,/^DESCRIPTION$/s/^    [^(]*\(dscomm_[a-z0-9_]*\)(.*/\1/p' |
    sort >"$scratch/declared"
sed -n '/^DSCOMM_[0-9PCN]/,/^}/s/^ *\(dscomm_[a-z0-9_]*\);$/\1/p' \
    "$abs_top_srcdir"/lib/*.map "$abs_top_srcdir"/compression/*.map \
    "$abs_top_srcdir"/profiler/*.map "$abs_top_srcdir"/backends/net/*.map |
    sort >"$scratch/public"
same "$scratch/declared" "$scratch/public" 'each function is in one synopsis'
tap_done
