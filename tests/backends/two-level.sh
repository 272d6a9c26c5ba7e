#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Two levels, on nodes that DSCOMM_HOST_ID makes of this machine: what auto chooses, and
# failures. The conformance suite on them is in the matrix.

. "$abs_top_srcdir/tests/backends/hosts.sh"

# What cannot be loaded is named.
like "$(DSCOMM_BACKEND=two_level DSCOMM_TWO_LEVEL_BETWEEN=nosuch $launch -n 2 \
    "$abs_top_builddir/examples/hello/hello" 2>&1)" "there is no backend 'nosuch' in " \
    'a backend between nodes that is not there'
like "$(hosts=aab DSCOMM_BACKEND=auto DSCOMM_TWO_LEVEL_BETWEEN=nosuch $launch -n 3 \
    "$conformance" collectives 2>&1)" \
    "warn: core: .*DSCOMM_TWO_LEVEL_BETWEEN: there is no backend 'nosuch' in " \
    'auto says that it is not there'

if make_mailbox; then
    DSCOMM_TWO_LEVEL_BETWEEN=mailbox
    export DSCOMM_TWO_LEVEL_BETWEEN
    # chosen HOSTS: the backend that auto takes
    chosen()
    {
        hosts=$1 DSCOMM_BACKEND=auto DSCOMM_LOG=core:info $launch \
            -n ${#1} "$conformance" collectives 2>&1 |
            sed -n 's/.*: backend \([a-z_]*\) is chosen.*/\1/p'
    }
    is "$(chosen aba)" two_level 'auto, two hosts and three ranks'
    is "$(chosen abc)" tcp 'auto, a rank on each host'
    is "$(chosen aaa)" shm 'auto, one host'
    # In another namespace of processes /proc has no rank 0.
    if unshare -pf --mount-proc true 2>"$scratch/why"; then
        like "$(DSCOMM_BACKEND=mailbox DSCOMM_TIMEOUT=20 $launch -n 2 sh -c '
            [ $RANK = 0 ] && exec "$@"; exec unshare -pf --mount-proc "$@"' sh \
            "$abs_top_builddir/examples/hello/hello" 2>&1)" \
            "rank 0's file: No such file" 'a rank without the file says so'
    else
        skip 'a rank without the file' "$(tail -n 1 "$scratch/why")"
    fi
    # A rank that cannot open a level; all wait for each other at the end, since the
    # launcher ends them with the first.
    cat >"$scratch/unable" <<'SCRIPT'
#!/bin/sh
DSCOMM_HOST_ID=$(echo aabb | cut -c $((RANK + 1)))
[ "$RANK" != 3 ] || DSCOMM_BACKEND_PATH=$path_of_rank_3
export DSCOMM_HOST_ID DSCOMM_BACKEND_PATH
"$@"
: >"$scratch/ended.$RANK"
for try in $(seq 300); do
    [ "$(find "$scratch" -name 'ended.*' | wc -l)" -lt 4 ] || break
    sleep 0.1
done
exit 1
SCRIPT
    chmod +x "$scratch/unable"
    export scratch
    mkdir "$scratch/other"
    sed 's|if (args->rank == 0) {|if (args->rank) \
            return dscomm_fail(DSCOMM_ERR_NO_BACKEND, "it is out of order"); \
        &|' "$abs_top_srcdir/examples/backend/mailbox.c" >"$scratch/other/mailbox.c"
    compile_mailbox "$scratch/other/mailbox.c" "$scratch/other"
    result $? 'a backend that cannot be opened'
    path_of_rank_3=$scratch/other:$DSCOMM_BACKEND_PATH
    export path_of_rank_3
    DSCOMM_BACKEND=two_level DSCOMM_TWO_LEVEL_INSIDE=mailbox DSCOMM_TIMEOUT=10 \
        DSCOMM_TWO_LEVEL_BETWEEN=shm $launch -n 4 "$scratch/unable" \
        "$abs_top_builddir/examples/hello/hello" >"$scratch/out" 2>&1
    # All ranks say it, but rank 2 only if it looks before it waits.
    like "$(grep -c "rank 3 (pid .*): group 'world': it is out of order" \
        "$scratch/out")" \
        '^[34]$' 'the other node hears of a level that cannot be opened' ||
        sed 's/^/# /' "$scratch/out"
    # A rank that has no backend between nodes.
    mkdir "$scratch/few"
    ln -s "$abs_top_builddir/backends/.libs/shm.so" "$scratch/few"
    rm "$scratch"/ended.*
    path_of_rank_3=$scratch/few
    DSCOMM_BACKEND_PATH=$scratch/few:$abs_top_builddir/backends/.libs \
        DSCOMM_BACKEND=two_level DSCOMM_TWO_LEVEL_BETWEEN=auto DSCOMM_TIMEOUT=10 \
        $launch -n 4 "$scratch/unable" "$abs_top_builddir/examples/hello/hello" \
        >"$scratch/out" 2>&1
    is "$(grep 'no backend serves between nodes; ' "$scratch/out" |
        grep -c 'tcp: rank 3 on [^ ]*: it has no backend tcp')" \
        4 'a rank without a backend that serves between nodes' ||
        sed 's/^/# /' "$scratch/out"
    # A rank without the backend inside nodes: auto finds another one.
    rm "$scratch"/ended.* "$scratch/few/shm.so"
    ln -s "$abs_top_builddir/backends/.libs/tcp.so" "$scratch/few"
    DSCOMM_BACKEND_PATH=$abs_top_builddir/backends/.libs DSCOMM_BACKEND=auto \
        DSCOMM_TWO_LEVEL_BETWEEN=auto DSCOMM_TIMEOUT=10 DSCOMM_LOG=core:info $launch -n 4 \
        "$scratch/unable" "$abs_top_builddir/examples/hello/hello" >"$scratch/out" 2>&1
    like "$(cat "$scratch/out")" \
        'backend tcp is chosen;.* two_level: DSCOMM_TWO_LEVEL_INSIDE shm: rank 3 on [^ ]*: it has' \
        'auto says which rank lacks what' ||
        sed 's/^/# /' "$scratch/out"
else
    skip 'auto' 'the example backend cannot be compiled'
fi

# A rank that waits for long sleeps, although messages may come on either level.
cat >"$scratch/timed" <<'SCRIPT'
#!/bin/sh
DSCOMM_HOST_ID=$(echo aabb | cut -c $((RANK + 1)))
export DSCOMM_HOST_ID
"$@"
times >"$scratch/times.$RANK"
tail -n 1 "$scratch/times.$RANK" | tr ms '  ' |
    awk '{ print $1 * 60 + $2 + $3 * 60 + $4 }' >"$scratch/cpu.$RANK"
SCRIPT
chmod +x "$scratch/timed"
export scratch
DSCOMM_BACKEND=two_level DSCOMM_TWO_LEVEL_BETWEEN=tcp DSCOMM_TIMEOUT=3 $launch -n 4 \
    "$scratch/timed" "$abs_top_builddir/tests/tools/failing" late >"$scratch/out" 2>&1
like "$(cat "$scratch/out")" 'made no progress for 3000 ms' 'ranks that wait for 3 s'
is "$(awk '$1 > 0 && $1 < 0.5' "$scratch/cpu.0" "$scratch/cpu.2" "$scratch/cpu.3" | wc -l)" 3 \
    'use a processor for less than half a second' || sed 's/^/# /' "$scratch"/cpu.?

# Ranks that die in a schedule on two levels. Long calls are left to shm.
DSCOMM_ALGORITHM=all_reduce:16K-:native,$levels
export DSCOMM_ALGORITHM
JOB_HOSTS=aab DSCOMM_BACKEND=two_level DSCOMM_TWO_LEVEL_BETWEEN=shm \
    "$abs_top_builddir/tests/backends/death.t" >"$scratch/out" 2>"$scratch/err"
pass_on 'schedules on two levels'
result $? 'deaths in schedules come to their end' ||
    sed 's/^/# /' "$scratch/err"
unset DSCOMM_ALGORITHM

# Counts that differ: only ranks of another machine, or the others' messages, can tell
# which one of a pair is wrong.
for operation in scatter_v gather_v all_to_all_v; do
    for hosts in aabb aaab; do
        for backend in two_level tcp; do
            DSCOMM_TWO_LEVEL_BETWEEN=tcp DSCOMM_BACKEND=$backend JOB_HOSTS=$hosts \
                "$abs_top_builddir/tests/backends/campaign" -n 4 -s 500 -f count \
                -o $operation >"$scratch/out" 2>"$scratch/err"
            pass_on "$operation, $backend on $hosts"
            result $? 'the runs come to their end' || sed 's/^/# /' "$scratch/err"
        done
    done
done

# Ranks that leave, die, fall silent, or call something else; and groups that shrink
DSCOMM_TWO_LEVEL_BETWEEN=shm DSCOMM_BACKEND=two_level
export DSCOMM_TWO_LEVEL_BETWEEN DSCOMM_BACKEND
for hosts in aab aba; do
    for area in leaving death mismatch shrink; do
        [ $hosts = aab ] || [ $area = mismatch ] || [ $area = shrink ] || continue
        JOB_HOSTS=$hosts "$abs_top_builddir/tests/backends/$area.t" \
            >"$scratch/out" 2>"$scratch/err"
        pass_on "ranks on hosts $hosts"
        result $? "$area comes to its end" || sed 's/^/# /' "$scratch/err"
    done
done
tap_done
