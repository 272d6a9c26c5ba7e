#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Whatever a program can call or an environment can say has its place in the
# manual.

. "$abs_top_srcdir/tests/tap.sh"

doc=$abs_top_srcdir/doc

# Functions of all nodes, and those that have a page or a link to one
sed -n '/^DSCOMM_[0-9PCN]/,/^}/s/^ *\(dscomm_[a-z0-9_]*\);$/\1.3/p' \
    "$abs_top_srcdir"/lib/*.map "$abs_top_srcdir"/compression/*.map \
    "$abs_top_srcdir"/profiler/*.map "$abs_top_srcdir"/backends/net/*.map |
    sort >"$scratch/functions"
for page in "$doc"/*.[1-9].rst; do basename "$page" .rst; done | sort >"$scratch/pages"
sed 's/ .*//' "$doc/links" >"$scratch/links"
sort "$scratch/pages" "$scratch/links" | comm -12 - "$scratch/functions" \
    >"$scratch/documented"
same "$scratch/documented" "$scratch/functions" 'each function has a page'

sort "$scratch/pages" "$scratch/links" | uniq -d >"$scratch/twice"
same "$scratch/twice" /dev/null 'none has two'

sed 's/.* //' "$doc/links" | sort -u | comm -23 - "$scratch/pages" \
    >"$scratch/dangling"
same "$scratch/dangling" /dev/null 'each link leads to a page'

# Another spelling of a page is in the section of that page.
sort "$scratch/links" | comm -23 - "$scratch/functions" >"$scratch/spellings"
tr _ - <"$scratch/pages" | sort | comm -13 - "$scratch/spellings" >"$scratch/stale"
same "$scratch/stale" /dev/null 'each link is a function, or a page with - for _'

# A page is built and installed only if it is listed.
sed -n 's|^manual += doc/||p' "$doc/Makemodule.am" | sort >"$scratch/listed"
same "$scratch/listed" "$scratch/pages" 'each page is listed'

# references FILE...: the pages of dscomm that they name, in bold, as NAME.SECTION
references()
{
    cat "$@" | grep -oE '\*\*dscomm[a-z0-9_-]*\*\*\\ \([1-9]\)' |
        sed 's/^\*\*//; s/\*\*\\ (/./; s/)//' | sort -u
}
references "$doc/index.rst" | comm -12 - "$scratch/pages" >"$scratch/indexed"
same "$scratch/indexed" "$scratch/pages" 'each page is in index.rst'
sort "$scratch/pages" "$scratch/links" >"$scratch/names"
references "$doc"/*.rst | comm -23 - "$scratch/names" >"$scratch/dangling"
same "$scratch/dangling" /dev/null 'each reference leads to a page'

# The page that a function leads to names it.
while read -r function; do
    page=$(sed -n "s/^$function //p" "$doc/links")
    grep -qw "${function%.3}" "$doc/${page:-$function}.rst" || echo "$function"
done <"$scratch/documented" >"$scratch/unnamed"
same "$scratch/unnamed" /dev/null 'each page names its functions'

"$abs_top_builddir/tools/dscomm" info --settings >"$scratch/info"
sed -n 's/^  \(DSCOMM_[A-Z0-9_]*\).*/\1/p' "$scratch/info" | sort \
    >"$scratch/settings"
[ -s "$scratch/settings" ]
result $? 'dscomm info --settings prints some'
cat "$doc"/*.7.rst | grep -o 'DSCOMM_[A-Z0-9_]*' | sort -u |
    comm -12 - "$scratch/settings" >"$scratch/explained"
same "$scratch/explained" "$scratch/settings" 'each setting is explained'
tap_done
