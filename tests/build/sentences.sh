#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# doc/dscomm-troubleshooting.7.rst has a row for each sentence of a failure in the sources,
# and no others. A row is the sentence in double backquotes, alone on its line, with "..."
# for what varies.

. "$abs_top_srcdir/tests/tap.sh"

cd "$abs_top_srcdir" || exit 99
page=doc/dscomm-troubleshooting.7.rst

# sentences FILE...: headers first
sentences()
{
    awk -f tests/build/sentences.awk tests/build/sentences.functions "$@"
}

cat >"$scratch/case.c" <<'END'
#define REMEDY "free some" /* "a comment" */
/* dscomm_fail(status, "in a comment") */
return dscomm_fail(STATUS_OF(x, "no sentence"), "no memory for %" PRIu64 " of "
                   "%-5.*s: %d%%; " REMEDY, value("not this one", 2), 1, "nor this");
tool_fail(TOOL_USAGE, "perf", many ? "%s has \"one\" name\n" : (few) ? "%zu are few" : "x",
          dscomm_priv_invalid(group, "name", "rank %d is not there", rank));
other_function("not a sentence here");
END
sentences "$scratch/case.c" | cut -f 1 | sort >"$scratch/got"
sort >"$scratch/want" <<'END'
no memory for ... of ...: ...%; free some
... has "one" name
... are few
rank ... is not there
END
same "$scratch/got" "$scratch/want" 'sentences are found in a source'

folders='lib env backends compression profiler tools'
# shellcheck disable=SC2046,SC2086
sentences $(find $folders -name '*.h'; find $folders -name '*.c') >"$scratch/sources"
cut -f 1 "$scratch/sources" | LC_ALL=C sort -u >"$scratch/want"
# shellcheck disable=SC2016
sed -nE 's/^(- )?``(.*)``$/\2/p' $page | LC_ALL=C sort >"$scratch/rows"
LC_ALL=C sort -u "$scratch/rows" >"$scratch/got"
LC_ALL=C comm -13 "$scratch/got" "$scratch/want" >"$scratch/missing"
same "$scratch/got" "$scratch/want" 'the page has the sentences of the sources' ||
    awk -F '\t' 'NR == FNR { missing[$0]; next }
        $1 in missing { print "# see " $2 ": " $1 }' "$scratch/missing" "$scratch/sources"
LC_ALL=C uniq -d "$scratch/rows" >"$scratch/twice"
same "$scratch/twice" /dev/null 'none has two rows'

# Each listed function is called. Folders are words on purpose.
# shellcheck disable=SC2086
grep -v '^#' tests/build/sentences.functions | while read -r name _; do
    case $name in
    *:*) grep -qw "${name#*:}" "${name%%:*}" ;;
    *) grep -rqw --include='*.c' "$name" $folders ;;
    esac 2>/dev/null || echo "$name"
done >"$scratch/stale"
same "$scratch/stale" /dev/null 'each function that takes a sentence is there'
tap_done
