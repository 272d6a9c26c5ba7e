#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm run: the time and the color of tags, and the processors of ranks.

. "$abs_top_srcdir/tests/tools/jobs.sh"

esc=$(printf '\033')
unset NO_COLOR

# Times of lines
before=$(date +%s)
TZ=Asia/Tokyo run -n 2 --timestamps sh -c 'echo out $RANK; sleep 0.3; echo err $RANK >&2'
like "$(sort -k 2 "$scratch/out")" \
    '^[0-9]{4}(-[0-9]{2}){2}T[0-9:]{8}\.[0-9]{3}Z \[0\]: out 0' 'the time before a tag'
is "$(cat "$scratch/out" "$scratch/err" | sed 's/^[^ ]* //' | sort | tr '\n' ';')" \
    '[0]: err 0;[0]: out 0;[1]: err 1;[1]: out 1;' 'the time before each line'
at=$(date -d "$(sed -n '1s/ .*//p' "$scratch/out")" +%s)
[ "$at" -ge "$before" ] && [ "$at" -le $((before + 20)) ]
result $? 'it is the time of the line, in UTC'
first=$(sed -n 's/Z \[0\].*//p' "$scratch/out") last=$(sed -n 's/Z \[0\].*//p' "$scratch/err")
passed=$(($(date -d "$last" +%s%3N) - $(date -d "$first" +%s%3N)))
[ $passed -ge 290 ] && [ $passed -lt 20000 ]
result $? "it has milliseconds: $passed"

# Colors
run -n 8 --tag-output --color always sh -c 'echo x'
is "$(sort "$scratch/out" | sed "s/$esc/E/g" | tr '\n' ' ')" \
    "$(for r in 0 6 1 7 2 3 4 5; do
        printf 'E[%dm[%d]:E[0m x ' $((31 + r % 6)) $r
    done)" 'a color for each rank'
run -n 1 --tag-output echo x
is "$out" '[0]: x' 'no color in a pipe'
runs 2 'an unknown word' -n 1 --color=yes true
is "$err" "dscomm run: --color 'yes' must be one of auto, always, never" 'the words that there are'

# terminal COMMAND: its output, on a terminal
terminal()
{
    script -qec "$1" /dev/null </dev/null | tr -d '\r' | sed "s/$esc/E/g"
}
if command -v script >/dev/null; then
    TERM=xterm
    export TERM
    is "$(terminal "'$program' run -n 1 --tag-output echo x")" 'E[31m[0]:E[0m x' \
        'a color on a terminal'
    is "$(NO_COLOR=1 terminal "'$program' run -n 1 --tag-output echo x")" '[0]: x' \
        'no color with NO_COLOR'
    is "$(NO_COLOR= terminal "'$program' run -n 1 --tag-output echo x")" \
        'E[31m[0]:E[0m x' 'a color with an empty NO_COLOR'
    is "$(TERM=dumb terminal "'$program' run -n 1 --tag-output echo x")" '[0]: x' \
        'no color on a terminal that has none'
    is "$(terminal "'$program' run -n 1 --tag-output --color never echo x")" '[0]: x' \
        'no color with --color never'
else
    skip 'colors on a terminal' 'no script (package bsdutils)'
fi

# Processors. The kernel says in /proc and in /sys which there are.
show='sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status'
all=$(sh -c "$show")
sys=/sys/devices/system/cpu
run -n 1 sh -c "$show"
is "$out" "$all" 'not bound'
run -n 1 --bind none sh -c "$show"
is "$out" "$all" '--bind none'
one=${all%%[-,]*}
siblings=$(cat $sys/cpu"$one"/topology/thread_siblings_list 2>/dev/null)
cores=$(cat $sys/cpu[0-9]*/topology/thread_siblings_list 2>/dev/null | sort -u | grep -c .)
if [ -n "$siblings" ] && [ "$all" = "$(cat $sys/online)" ]; then
    run -n 1 --bind core sh -c "$show"
    is "$status $out" "0 $siblings" '--bind core: the first core'
    run -n "$cores" --bind core sh -c "$show"
    is "$(sort -u "$scratch/out")" \
        "$(cat $sys/cpu[0-9]*/topology/thread_siblings_list | sort -u)" \
        '--bind core: a core for each rank'
    for object in numa socket; do
        run -n 1 --bind $object sh -c "$show"
        case $object in
        numa) want=$(cat /sys/devices/system/node/node0/cpulist 2>/dev/null) ;;
        socket) want=$(cat $sys/cpu"$one"/topology/core_siblings_list) ;;
        esac
        [ -n "$want" ] && is "$status $out" "0 $want" "--bind $object" ||
            skip "--bind $object" 'the kernel names none'
    done
    run -n $((cores + 1)) --bind core sh -c "$show"
    is "$status $(sort -u "$scratch/out")" "0 $all" 'more ranks than cores: not bound'
    is "$err" "dscomm run: no rank is bound: $((cores + 1)) ranks are more than the \
$cores core$([ "$cores" = 1 ] || echo s) of this machine that may be used" \
        'more ranks than cores: said once'
else
    skip '--bind' 'not all processors may be used, or /sys names no cores'
fi
if command -v taskset >/dev/null; then
    last=${all##*[-,]}
    for object in core numa socket; do
        out=$(taskset -c "$last" "$program" run -n 1 --bind $object sh -c "$show")
        is "$out" "$last" "--bind $object: only processors that may be used"
    done
    out=$(taskset -c "$last" "$program" run -n 2 --bind numa sh -c "$show" 2>"$scratch/err")
    is "$(echo "$out" | sort -u) $(cat "$scratch/err")" \
        "$last dscomm run: no rank is bound: 2 ranks are more than the 1 core of NUMA node 0 that may be used" \
        'more ranks than cores that may be used'
else
    skip 'a part of the processors' 'no taskset (package util-linux)'
fi
if [ "$cores" -ge 2 ] && [ "$all" = "$(cat $sys/online)" ]; then
    last=${all##*[-,]}
    run -n 2 --bind "$one,$last" sh -c "echo \$RANK \$OMP_NUM_THREADS; $show"
    is "$(sort "$scratch/out" | tr '\n' ' ')" "$(printf '%s\n' '0 1' '1 1' "$one" "$last" |
        sort | tr '\n' ' ')" '--bind LIST: shares, and the threads of OpenMP'
    run -n 1 --bind "$last" sh -c "$show"
    is "$out" "$last" '--bind LIST'
    HWLOC_SYNTHETIC='Package:1 Core:2 PU:1' run -n 1 --bind gpu sh -c "$show"
    is "$out $err" "$all dscomm run: no rank is bound: hwloc finds no GPU" \
        '--bind gpu without one'
    # The ranks bind themselves, unless this launcher has done it.
    bound()
    {
        DSCOMM_BIND=core DSCOMM_LOG=warn,env:info run -n 2 "$@" \
            "$program" perf -b 8 -e 8 --iters 1 all_reduce
        sed -n 's/^dscomm\[[01]\]: info: env: //p' "$scratch/err" | sort -u
    }
    like "$(bound)" '^bound to processors .*: 1 of the [0-9]+ cores of this machine, for 2 ranks' \
        'DSCOMM_BIND'
    is "$(bound | wc -l)" 2 'DSCOMM_BIND: no two ranks share'
    like "$(bound --bind core)" '^DSCOMM_BIND is ignored: bound to .* already, by the launcher' \
        'DSCOMM_BIND after --bind'
    # So do ranks that a command starts.
    DSCOMM_BIND=core DSCOMM_LOG=warn,env:info "$program" perf -n 2 -b 8 -e 8 --iters 1 \
        all_reduce >"$scratch/out" 2>"$scratch/err"
    is "$? $(grep -c ' bound to processors .*: 1 of the [0-9]* cores of this machine, for 2 ranks' \
        "$scratch/err")" '0 2' \
        'DSCOMM_BIND: ranks of dscomm perf -n'
    is "$(sed -n 's/.* bound to processors \(.*\): 1 of.*/\1/p' "$scratch/err" | sort -u | wc -l)" \
        2 'DSCOMM_BIND: no two of them share'
else
    skip '--bind LIST, and DSCOMM_BIND' 'one core, or not all processors may be used'
fi
HWLOC_SYNTHETIC='NUMANode:1 Core:4096 PU:1' HWLOC_THISSYSTEM=0 run -n 2 --bind core sh -c "$show"
is "$status $(sort -u "$scratch/out") $err" "0 $all dscomm run: no rank is bound: \
the topology is of another machine (HWLOC_THISSYSTEM=0)" '--bind on another machine'
err=$(HWLOC_SYNTHETIC='NUMANode:1 Core:4096 PU:1' HWLOC_THISSYSTEM=0 DSCOMM_BIND=core \
    DSCOMM_LOG=warn "$program" perf -b 8 -e 8 --iters 1 all_reduce 2>&1 >"$scratch/out")
like "$err" 'warn.*: env: DSCOMM_BIND: not bound: the topology is of another machine' \
    'DSCOMM_BIND on another machine'
runs 2 'an unknown object' -n 1 --bind cpu true
is "$err" "dscomm run: --bind 'cpu': give none, core, numa, socket, gpu or a list of \
processors as 0-3,8, with force: before it or not" 'the objects that there are'

tap_done
