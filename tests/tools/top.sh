#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm top, on a job whose rank 1 is stopped while the others wait for it.

. "$abs_top_srcdir/tests/tools/jobs.sh"

# member NAME: its values in $json, in the order of the ranks
member()
{
    printf '%s\n' "$json" | sed -n "s/.*\"$1\" : \\(.*[^,]\\),*\$/\\1/p" | tr '\n' ' '
}

# is_stopped: whether top shows that rank 1 is stopped, and the others wait
is_stopped()
{
    json=$("$program" top --once --json --interval 0.01 "$job" 2>&1) &&
        [ "$(member process)" = '"running" "stopped" "running" "running" ' ] &&
        [ "$(printf '%s\n' "$json" | grep -c '"current" : "all_reduce(count 4, float32, sum) #5"')" = 3 ]
}

DSCOMM_TIMEOUT=100 "$program" run -n 4 "$abs_top_builddir/tests/tools/failing" stop \
    >/dev/null 2>&1 &
job=$!
until_true is_stopped
result $? 'rank 1 is stopped, and the others wait in the fifth collective'
is "$(member rank)" '0 1 2 3 ' 'all ranks'
is "$(printf '%s\n' "$json" | grep -c '"current" : null')" 1 'rank 1 is in no call'
out=$("$program" top --once --interval 0.01 "$job")
is $? 0 'as text'
like "$out" '^job [0-9a-f]+, 4 ranks on this machine$' 'the job'
like "$out" '^ +1 +[0-9]+ stopped .* no call$' 'the stopped rank'
like "$out" '^ +3 +[0-9]+ running .* all_reduce\(count 4, float32, sum\) #5$' 'a rank that waits'
pid=$(member pid | cut -d' ' -f1)
out=$("$program" top --once --interval 0.01 "$pid")
like "$out" '^ +1 +[0-9]+ stopped' 'by the pid of a rank'
out=$("$program" analyze "$job")
is $? 1 'dscomm analyze on the running job'
like "$out" '^rank 1 \(pid [0-9]+ on [^ ]+\) is stopped' 'finds the stopped rank'
like "$out" "^group 'world': rank 1 is behind: ranks 0, 2, 3 have called all_reduce\(count 4, float32, sum\) #5" \
    'and who waits for it'
kill -TERM "$job"
kill -CONT "$(member pid | cut -d' ' -f2)" 2>/dev/null
for p in $(member pid); do
    kill -KILL "$p" 2>/dev/null
done
wait "$job"
"$program" top --once $$ >/dev/null 2>"$scratch/err"
is $? 1 'a process that is no rank'
like "$(cat "$scratch/err")" "^dscomm top: process $$: it has no flight recorder" 'says so'
for arguments in '1x' '0' '1 2' '--interval 0' '--interval 1e9' '--nothing'; do
    # shellcheck disable=SC2086
    "$program" top --once $arguments >/dev/null 2>&1
    is $? 2 "wrong use: $arguments"
done
tap_done
