#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make clean removes every program that a target of the Makefile can build, those on
# request too: make distcheck fails on a file that is left.

. "$abs_top_srcdir/tests/tap.sh"

unset MAKEFLAGS MFLAGS MAKELEVEL

# words VARIABLE: its value in the Makefile, one word a line
words()
{
    printf 'include Makefile\nwords-of:\n\t@echo $(%s)\n' "$1" |
        "$MAKE" -s -C "$abs_top_builddir" -f - words-of | tr ' ' '\n' | sort -u
}

words CLEANFILES >"$scratch/cleaned"
for name in EXTRA_PROGRAMS check_DATA; do
    words $name >"$scratch/built"
    comm -12 "$scratch/built" "$scratch/cleaned" >"$scratch/both"
    [ -s "$scratch/built" ]
    result $? "$name has programs"
    same "$scratch/both" "$scratch/built" "make clean removes $name"
done

# --disable-tests empties all that make check would build.
grep -ohE '^check_[A-Z]+' "$abs_top_srcdir/Makefile.am" | sort -u >"$scratch/built"
for place in '^check_[A-Z]+' '[ ]check_[A-Z]+'; do
    grep -oE "$place" "$abs_top_srcdir/tests/none.mk" | tr -d ' ' | sort >"$scratch/emptied"
    same "$scratch/emptied" "$scratch/built" "--disable-tests builds no tests ($place)"
done
tap_done
