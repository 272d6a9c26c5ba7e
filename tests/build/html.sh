#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The manual as HTML: make install-html puts down a page for each page of the manual,
# whose links lead to others, and that loads nothing.

. "$abs_top_srcdir/tests/tap.sh"

unset MAKEFLAGS MFLAGS MAKELEVEL
command -v rst2html5 >/dev/null || skip_all 'no rst2html5 (docutils)'

# makes TARGET
makes()
{
    "$MAKE" -C "$abs_top_builddir" "$1" DESTDIR="$scratch/root" >"$scratch/log" 2>&1
    result $? "make $1" || sed 's/^/# /' "$scratch/log"
}

makes install-html
cd "$scratch/root$htmldir" || exit 99
{ echo index.html; sed -n 's|^manual += doc/\(.*\)|\1.html|p' \
    "$abs_top_srcdir/doc/Makemodule.am"; } | sort >"$scratch/want"
ls >"$scratch/pages"
same "$scratch/pages" "$scratch/want" 'a page for each of the manual, and an index'

cat ./*.html | grep -oE 'href="[^"#]+' | sed 's/href="//' | sort -u >"$scratch/hrefs"
comm -23 "$scratch/hrefs" "$scratch/pages" >"$scratch/dangling"
same "$scratch/dangling" /dev/null 'links lead to pages'
comm -13 "$scratch/hrefs" "$scratch/pages" | grep -vx index.html >"$scratch/alone"
same "$scratch/alone" /dev/null 'to each of them'
grep -lE '<(script|img|iframe|link)|@import|url\(' ./*.html >"$scratch/loads"
same "$scratch/loads" /dev/null 'no page loads anything'
grep -l '\*\*dscomm' ./*.html >"$scratch/raw"
same "$scratch/raw" /dev/null 'no markup is left'

cd "$scratch" || exit 99
makes uninstall-local
find "$scratch/root" -type f >"$scratch/left"
same "$scratch/left" /dev/null 'make uninstall removes them'
tap_done
