#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What README.md and the other texts name exists: the first program, links, files,
# commands and their options. Their words, and those of the sources, are spelt as
# codespell knows them.

. "$abs_top_srcdir/tests/tap.sh"

cd "$abs_top_srcdir" || exit 99
sed -n '/^```c$/,/^```$/{/^```/d;p;}' README.md >"$scratch/got"
cmp "$scratch/got" examples/hello/hello.c 1>&2
result $? 'the first program is examples/hello/hello.c'

is "$(head -n 1 NEWS)" "dscomm $PACKAGE_VERSION" 'NEWS begins with this version'

folders='lib env backends compression profiler tools examples bindings tests'
# Folders are words on purpose; bindings/site is what pip has installed there.
# shellcheck disable=SC2086
find $folders -name site -prune -o -name README.md -print >"$scratch/texts"
ls ./*.md NEWS doc/*.md doc/*.rst >>"$scratch/texts"

# without_file: of lines "TEXT NAME" those without a file NAME, here or where TEXT is
without_file()
{
    while read -r text name; do
        [ -e "$name" ] || [ -e "$(dirname "$text")/$name" ] || echo "$text: $name"
    done
}

xargs grep -oHE '\]\([^):#]+[)#]' <"$scratch/texts" | sed 's/:](/ /; s/.$//' |
    without_file >"$scratch/dangling"
same "$scratch/dangling" /dev/null 'links lead to files'

xargs grep -oHE '\]\(#[^)]+' <"$scratch/texts" | sed 's/:](#/ /' |
    while read -r text anchor; do
        sed -n 's/^##* //p' "$text" | tr 'A-Z ' 'a-z-' | tr -d ',.`' |
            grep -qx -e "$anchor" || echo "$text: #$anchor"
    done >"$scratch/dangling"
same "$scratch/dangling" /dev/null 'links in a text lead to headings'

# Others are made by the build, and NAME stands for names.
xargs grep -oHE "[\`*]($(echo "$folders" doc | tr ' ' '|'))/[A-Za-z0-9_/.-]+\.[a-z]+[\`*]" \
    <"$scratch/texts" | sed 's/:[`*]/ /; s/[`*]$//' | grep -vE 'NAME|\.(t|la|log|rows)$' |
    without_file >"$scratch/dangling"
same "$scratch/dangling" /dev/null 'files that texts name exist'

dscomm=$abs_top_builddir/tools/dscomm
"$dscomm" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | while read -r command; do
    echo "== $command"
    "$dscomm" "$command" --help
done >"$scratch/help"
ls examples/guide/*.sh | cat "$scratch/texts" - |
    xargs awk -f tests/build/commands.awk "$scratch/help" >"$scratch/unknown"
same "$scratch/unknown" /dev/null 'commands have the options that texts give them'
# shellcheck disable=SC2016
echo '`dscomm run -n 4 --none a`, dscomm perf --async --none=3' >"$scratch/text"
is "$(awk -f tests/build/commands.awk "$scratch/help" "$scratch/text" |
    sed 's/.*: //' | tr '\n' ',')" 'dscomm run --none,dscomm perf --none,' \
    'an option that a command has not is found'

if command -v codespell >/dev/null; then
    # shellcheck disable=SC2086
    find ${folders% tests} -name '*.[ch]' | cat "$scratch/texts" - |
        xargs codespell --ignore-regex '\\[nt]' --ignore-words tests/build/words \
            >"$scratch/misspelt"
    same "$scratch/misspelt" /dev/null 'spelling'
else
    skip spelling 'no codespell'
fi
tap_done
