#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The example store under dscomm run, and by address: each task is done once, and one
# process is the leader.

. "$abs_top_srcdir/tests/tools/fixture.sh"

store=$abs_top_builddir/examples/store/store
unset MASTER_ADDR MASTER_PORT DSCOMM_JOB_SECRET DSCOMM_JOB_SECRET_FILE

# done_once N TEXT: N processes have done all tasks; the sum of the squares to 100 is
# 100 * 101 * 201 / 6
done_once()
{
    is "$(echo "$out" | sed -n 's/^process [0-9]*: \([0-9]*\) tasks$/\1/p' |
        awk '{ tasks += $1 } END { print NR, tasks }')" "$1 100" "$2: each task once" ||
        echo "$out" | sed 's/^/# /'
    is "$(echo "$out" | grep -cE '^process [0-9]+ leads: the sum is 338350$')" 1 \
        "$2: a leader"
}

for n in 1 2 3 4; do
    dscomm run -n $n --timeout 100 "$store"
    is $status 0 "$n ranks: status"
    done_once $n "$n ranks"
done

# At an address that no other test has
url=tcp://127.$((1 + $$ / 65536)).$(($$ / 256 % 256)).$(($$ % 256)):29500
for process in 1 2 3; do
    timeout -k 5 100 "$store" "$url" >"$scratch/out.$process" 2>"$scratch/err.$process" &
    eval pid_$process=$!
done
timeout -k 5 100 "$store" "$url" 4 >"$scratch/out.4" 2>"$scratch/err"
statuses=$?
for process in 1 2 3; do
    eval wait "\$pid_$process"
    statuses="$statuses $?"
done
is "$statuses" '0 0 0 0' 'by address: statuses'
out=$(cat "$scratch"/out.[1-4])
done_once 4 'by address'

out=$(timeout -k 5 100 "$store" "$url" 1 2>"$scratch/err")
is $? 0 'alone: status'
done_once 1 'alone'

for wrong in '' nowhere; do
    # No argument on purpose.
    # shellcheck disable=SC2086
    "$store" $wrong >"$scratch/out" 2>"$scratch/err"
    is $? 1 "URL '$wrong': status"
    like "$(cat "$scratch/err")" "^[^ ]*store\.c:.* store '$wrong': give .*tcp://HOST:PORT" \
        "URL '$wrong': the sentence"
done
for wrong in 0 -1 x 2x '2 2'; do
    # Arguments are words on purpose.
    # shellcheck disable=SC2086
    "$store" "$url" $wrong >"$scratch/out" 2>"$scratch/err"
    is "$? $(grep -c '^usage: store' "$scratch/err")" '2 1' "usage: $wrong"
done
tap_done
