#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Strangers at the ports of backend tcp: every connection that does not prove that it
# belongs to the job is closed, and the job goes on.

. "$abs_top_srcdir/tests/tools/jobs.sh"

trap 'kill_started; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
command -v python3 >/dev/null || skip_all 'no python3'

for seed in 1 2; do
    DSCOMM_BACKEND=tcp DSCOMM_TCP_UNIX=no start_node 0 "$program" run -n 2 --tag-output \
        sh -c 'echo $$ >"$0.$RANK"; exec "$@"' "$scratch/pid" \
        "$abs_top_builddir/tests/backends/net/rounds" 12
    appears 2 "$scratch/pid.0" "$scratch/pid.1"
    sleep 1
    python3 "$abs_top_srcdir/tests/backends/net/hostile.py" "$(cat "$scratch/pid.1")" $seed \
        >"$scratch/attack" 2>&1
    result $? "a rank closes the connections of strangers, seed $seed" ||
        sed 's/^/# /' "$scratch/attack"
    finish
    is "$statuses" 0 'the job goes on, and its sums are right'
    is "$(grep -c 'closed a connection from' "$scratch/err.0")" 1 'one of them is logged'
    rm -f "$scratch"/pid.?
done
tap_done
