#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Files that call each other in circles are one file in several pieces: none can
# be read, tested or replaced without the others. The symbols of the objects
# show them.

. "$abs_top_srcdir/tests/tap.sh"

# Files that still are in a circle, one circle a line. Nothing may be added.
cat >"$scratch/known" <<'END'
END

# objects DIRECTORY...: "OBJECT FILE" for the latest object of each file, as a build
# folder may have some of files that went, or were built otherwise before.
objects()
{
    # shellcheck disable=SC2046
    ls -t $(find "$@" -path '*/.libs/*.o') |
        sed 's,\(.*\)/\.libs/\([a-z0-9]*_la-\)*\(.*\)\.o$,& \1/\3,' |
        while read -r object file; do
            [ ! -e "$abs_top_srcdir/$file.c" ] || echo "$object $file"
        done | sort -s -u -k 2
}

# uses DIRECTORY...: "FILE FILE" for each file with a symbol that another one
# defines.
uses()
{
    objects "$@" | while read -r object file; do
        $NM -g "$object" | awk -v file="$file" '{ print file, $(NF - 1), $NF }'
    done |
        awk '
        $2 == "U" { used[++n] = $0; next }
        $2 ~ /^[TDRBCVW]$/ { by[$3] = $1 }
        END {
            for (i = 1; i <= n; i++) {
                split(used[i], use, " ")
                if (use[3] in by && by[use[3]] != use[1])
                    print use[1], by[use[3]]
            }
        }' | sort -u
}

# circles: reads "FILE FILE"; prints the files of each circle as a line.
circles()
{
    awk '
    { if (!($1 in out)) names[++n] = $1; out[$1] = out[$1] " " $2 }
    # marks all that from reaches by way of file
    function visit(file,    list, i, count)
    {
        count = split(out[file], list, " ")
        for (i = 1; i <= count; i++) {
            if (!((from, list[i]) in reach)) {
                reach[from, list[i]] = 1
                visit(list[i])
            }
        }
    }
    END {
        for (i = 1; i <= n; i++) {
            from = names[i]
            visit(from)
        }
        for (i = 1; i <= n; i++) {
            if (names[i] in done || !((names[i], names[i]) in reach))
                continue
            line = ""
            for (j = 1; j <= n; j++) {
                if (((names[i], names[j]) in reach) && ((names[j], names[i]) in reach)) {
                    done[names[j]] = 1
                    line = line " " names[j]
                }
            }
            print substr(line, 2)
        }
    }'
}

is "$(printf '%s\n' 'a b' 'b c' 'c b' 'c d' 'd d' | circles)" 'b c
d' 'a circle is found'

# new: reads circles; prints those that are not part of one in $scratch/known.
new()
{
    awk '
    FILENAME == ARGV[1] { for (i = 1; i <= NF; i++) circle[$i] = NR; next }
    {
        for (i = 1; i <= NF; i++) {
            if (!($i in circle) || circle[$i] != circle[$1]) {
                print
                next
            }
        }
    }' "$scratch/known" -
}

printf '%s\n' 'lib/a lib/b' >>"$scratch/known"
is "$(printf '%s\n' 'lib/a lib/b' 'lib/a lib/c' | new)" 'lib/a lib/c' \
    'a file that joins a circle is found'

cd "$abs_top_builddir" || exit 1
for component in lib env backends/shm backends/mpi compression profiler tools; do
    [ ! -d "$component" ] || uses "$component"
done >"$scratch/uses"
if [ ! -s "$scratch/uses" ]; then
    skip 'no new circle' 'the objects of a shared library were not kept'
else
    is "$(circles <"$scratch/uses" | new)" '' 'no new circle'
fi
tap_done
