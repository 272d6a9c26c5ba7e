#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The gate names what failed in its last lines.

. "$abs_top_srcdir/tests/tap.sh"

# A release is without the gate.
[ -d "$abs_top_srcdir/.ci" ] || skip_all 'no .ci here'
cp -R "$abs_top_srcdir/.ci" "$scratch" || exit 99

# gate TEXT: the last lines of the gate if ./bootstrap prints TEXT and fails
gate()
{
    printf '%s\n' "$1" >"$scratch/output"
    printf '#!/bin/sh\ncat output\nexit 1\n' >"$scratch/bootstrap"
    chmod +x "$scratch/bootstrap"
    "$scratch/.ci/run" check >"$scratch/log"
    echo $? >"$scratch/status"
    sed '1,/^END$/d' "$scratch/log"
}

got=$(gate 'PASS: tests/a.t 1 - fine
FAIL: tests/a.t 2 - a sum
FAIL: tests/a.t 3 - another sum
ERROR: tests/b.sh - exited with status 1
# TOTAL: 4
# PASS:  1
# FAIL:  2
# ERROR: 1
   dscomm 0.1: ./test-suite.log
===============================

FAIL: tests/a
=============

# said by a test that passes
ok 1 - fine
PASS: tests/a.t 1 - fine
not ok 2 - a sum
FAIL: tests/a.t 2 - a sum
#   got 3, want 4
not ok 3 - another sum
FAIL: tests/a.t 3 - another sum
#   got 5, want 6
#   got 7, want 8
1..3

# no such file
ERROR: tests/b.sh - exited with status 1

END')
is "$got" 'failed in stage check:
  FAIL: tests/a.t 2 - a sum
    #   got 3, want 4
  FAIL: tests/a.t 3 - another sum
    #   got 5, want 6
    #   got 7, want 8
  ERROR: tests/b.sh - exited with status 1
    # no such file
1 passed, 3 failed, 0 skipped' 'tests, with what they say'
is "$(cat "$scratch/status")" 1 'the status of tests that failed'

got=$(gate "$(i=0; while [ $((i += 1)) -le 50 ]; do
    printf 'FAIL: tests/c.t %d - one of many\n' $i
done; printf '# FAIL: 50\nEND\n')")
is "$(printf '%s\n' "$got" | sed -n '2p;$p')" \
    '  FAIL: tests/c.t 1 - one of many
0 passed, 50 failed, 0 skipped' 'many tests'
is "$(printf '%s\n' "$got" | wc -l)" 13 'many tests: ten of them'

is "$(gate "lib/x.c:1:2: error: expected ';'
make: *** [Makefile:3: all] Error 1
END")" "failed in stage check:
  lib/x.c:1:2: error: expected ';'
  make: *** [Makefile:3: all] Error 1
0 passed, 1 failed, 0 skipped" 'a build'

is "$(gate "W: see elsewhere
dscomm.x86_64: W: no-soname libdscomm.so
W: libdscomm0: no-symbols-control-file
END")" 'failed in stage check:
  dscomm.x86_64: W: no-soname libdscomm.so
  W: libdscomm0: no-symbols-control-file
0 passed, 1 failed, 0 skipped' 'packages'

printf '#!/bin/sh\necho "# PASS: 2"\n' >"$scratch/bootstrap"
is "$("$scratch/.ci/run" check)" '# PASS: 2
2 passed, 0 failed, 0 skipped' 'nothing failed'

printf '#!/bin/sh\nprintf "# PASS:  2\\n# SKIP:  1\\n# ERROR: 0\\n%%.0s" 1 2 3\n' >"$scratch/bootstrap"
is "$("$scratch/.ci/run" check | tail -n 1)" '6 passed, 0 failed, 3 skipped' 'several make check'

is "$(gate "$(printf '%s\n' '   dscomm 0.1: ./test-suite.log' '# PASS:  1' '# FAIL:  2' '# ERROR: 0' \
    'Testsuite summary' '# PASS:  1' '# FAIL:  2' '# ERROR: 0' 'See ./test-suite.log' END)" |
    tail -n 1)" '1 passed, 2 failed, 0 skipped' 'the summary in test-suite.log'

printf '#!/bin/sh\nexit 1\n' >"$scratch/bootstrap"
is "$("$scratch/.ci/run")" 'failed in stage plain:
0 passed, 1 failed, 0 skipped' 'the first stage that fails is the last'
tap_done
