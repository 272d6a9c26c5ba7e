#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm itself: help and version, and that they are not lost unnoticed.

. "$abs_top_srcdir/tests/tools/fixture.sh"

"$program" --version >"$scratch/out"
is "$? `cat "$scratch/out"`" "0 dscomm $PACKAGE_VERSION" 'the version'
"$program" xyzzy >"$scratch/out" 2>"$scratch/err"
is "$? `cat "$scratch/out"`" '2 ' 'no such command'
like "`cat "$scratch/err"`" "^dscomm: no command 'xyzzy'" 'which one'
"$program" inof >"$scratch/out" 2>"$scratch/err"
like "`cat "$scratch/err"`" "^dscomm: no command 'inof'; is info meant\?" 'which one is meant'
"$program" >/dev/null 2>&1
is $? 2 'no command'
is "$("$program" help)" "$("$program" --help)" 'help'
is "$("$program" help help)" "$("$program" help)" 'help help'
for command in run perf tune topo env info; do
    is "$("$program" help $command)" "$("$program" $command --help)" "help $command"
done
"$program" help xyzzy >"$scratch/out" 2>"$scratch/err"
is "$? `cat "$scratch/out"`" '2 ' 'help for no command'

# Status, and what is run with nothing to write to.
while read -r want line; do
    "$program" $line >"$scratch/out"
    is "$? `grep -c . "$scratch/out" | sed 's/[1-9][0-9]*/lines/'`" '0 lines' "$line"
    if ! [ -c /dev/full ]; then
        skip "$line that cannot be written" 'no /dev/full'
        continue
    fi
    "$program" $line >/dev/full 2>"$scratch/err"
    is $? $want "$line that cannot be written: status"
    like "`cat "$scratch/err"`" '^dscomm( [a-z]+)?: cannot write: No space' \
        "$line that cannot be written"
    "$program" $line 2>/dev/null >&-
    is $? $want "$line without standard output"
done <<'END'
1 --help
1 help
1 --version
125 run --help
1 perf --help
1 tune --help
1 tune --machine
1 topo --help
1 topo
1 env --help
1 env
1 env --json
1 info --help
1 help info
1 info
1 info --json
END

"$program" perf -n 2 -b 8 -e 8 -t 0.001 barrier --json 2>"$scratch/err" >&-
is $? 1 'perf with ranks of its own, without standard output'
like "`cat "$scratch/err"`" 'cannot write.*: Bad file' 'which is said'


tap_done
