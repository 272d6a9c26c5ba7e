#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm run --nnodes MIN:MAX, all nodes on this machine: one address of loopback that
# no other test has. Nodes are numbered by their arrival, so that the numbers here are
# only those of their files.

. "$abs_top_srcdir/tests/tools/jobs.sh"

trap 'kill_started; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

address=127.$((64 + $$ / 65536)).$(($$ / 256 % 256)).$(($$ % 256))
host=$(uname -n)
bounds='--join-timeout 30 --node-timeout 4 --last-call 1.5 --grace 2'

# node R ARGUMENT...: starts dscomm run; 0 is that of --master
node()
{
    r=$1
    shift
    # Split on purpose: one word an option.
    # shellcheck disable=SC2046,SC2086
    start_node "$r" "$program" run --nnodes "$nodes" \
        $([ "$r" != 0 ] || echo --node-rank 0) --master $address $bounds "$@"
}

# says R TEXT: waits until node R does
says()
{
    until_true grep -q "$2" "$scratch/err.$1" 2>/dev/null
}

clean()
{
    rm -f "$scratch"/out.* "$scratch"/err.* "$scratch"/up.*
}

# stay R [ARGUMENT...]: node R, whose ranks write up.R.ATTEMPT with their world, and
# stay until the file "end" is there
stay()
{
    r=$1
    shift
    node "$r" -n 1 "$@" sh -c 'echo $$ >"$1/pid.$2"
        echo $RANK of $WORLD_SIZE, $GROUP_WORLD_SIZE nodes \
        >"$1/up.$2.$TORCHELASTIC_RESTART_COUNT.$LOCAL_RANK"
        until [ -e "$1/end" ]; do sleep 0.1; done' sh "$scratch" "$r"
}

# worlds ATTEMPT: what the ranks of an attempt have written
worlds()
{
    cat "$scratch"/up.?."$1".* | sort | tr '\n' ';'
}

# up COUNT ATTEMPT: waits until so many ranks of the attempt have
up()
{
    until_true has_files "$@"
}

has_files()
{
    [ "$(ls "$scratch"/up.?."$2".* 2>/dev/null | wc -l)" -ge "$1" ]
}

# Coming together
nodes=1:4
clean
for r in 0 1 2; do
    node $r -n $((r + 1)) sh -c 'echo $RANK $WORLD_SIZE $GROUP_WORLD_SIZE'
done
ends 0,0,0 'three of one to four nodes'
is "$(sort "$scratch/out" | tr '\n' ' ')" '0 6 3 1 6 3 2 6 3 3 6 3 4 6 3 5 6 3 ' \
    'three of one to four nodes: the world'
is "$(cat "$scratch"/err.[012] | grep -v warn)" '' 'three of one to four nodes: no word'
nodes=2:2
clean
bounds='--join-timeout 30 --last-call 25'
before=$(date +%s)
for r in 0 1; do
    node $r -n 1 sh -c 'echo $RANK $WORLD_SIZE $GROUP_RANK'
done
ends 0,0 'all nodes that there may be'
[ $(($(date +%s) - before)) -lt 20 ]
result $? 'all nodes that there may be: no last call'
is "$(sort "$scratch/out" | tr '\n' ' ')" '0 2 0 1 2 1 ' 'all nodes that there may be: ranks'
nodes=1:1
clean
node 0 -n 2 sh -c 'echo $RANK $WORLD_SIZE'
ends 0 'one node'
is "$(sort "$scratch/out" | tr '\n' ' ')" '0 2 1 2 ' 'one node: ranks'

# The library's ranks meet, after a restart as well
bounds='--join-timeout 30 --node-timeout 4 --last-call 1.5 --grace 2'
nodes=1:2
clean
for r in 0 1; do
    DSCOMM_TIMEOUT=60 node $r -n 2 --max-restarts 1 sh -c \
        '[ $RANK$TORCHELASTIC_RESTART_COUNT != 30 ] || exit 5; exec "$1"' sh \
        "$abs_top_builddir/examples/hello/hello"
done
ends 0,0 'started again: statuses'
is "$(grep -c 'of 4: the sum of all ranks is 6' "$scratch/out")" 4 \
    'started again: the ranks compute a sum'

# A node dies, and comes again
nodes=2:3
clean
rm -f "$scratch/end"
for r in 0 1 2; do
    stay $r --max-restarts 2
done
up 3 0
is "$(worlds 0)" '0 of 3, 3 nodes;1 of 3, 3 nodes;2 of 3, 3 nodes;' 'three nodes'
kill -KILL "$pid_2"
up 2 1
is "$(worlds 1)" '0 of 2, 2 nodes;1 of 2, 2 nodes;' 'a node dies: the others go on'
like "$(err 0)" "node [12] \\(host\\): dscomm run \\(pid\\) was killed; ending rank 0; starting all again \\(restart 1 of 2\\)" \
    'a node dies: node 0 says so'
stay 3 --max-restarts 2
says 3 'runs on 2 nodes without this one'
is "$(err 3 | grep -v warn)" 'dscomm run: the job runs on 2 nodes without this one, which joins at the next restart' \
    'a node comes late'
kill -KILL "$(cat "$scratch/pid.1")"
up 3 2
is "$(worlds 2)" '0 of 3, 3 nodes;1 of 3, 3 nodes;2 of 3, 3 nodes;' \
    'a node comes late: it joins at the next restart'
kill -KILL "$pid_3"
finish
is "$statuses" 125,125,137,137 'no restart is left: statuses'
like "$(err 0 | tail -n 1)" '^dscomm run: node [12] \(host\): dscomm run \(pid\) was killed; ending rank 0$' \
    'no restart is left: the lost node is named'

# A node hangs, is left behind, and continued
clean
nodes=1:2
for r in 0 1; do
    stay $r --max-restarts 3
done
up 2 0
kill -STOP "$pid_1"
up 1 1
is "$(worlds 1)" '0 of 1, 1 nodes;' 'a node hangs: the others go on'
like "$(err 0)" '^dscomm run: node 1 \(host\): nothing was heard of it for 4 s: .*starting all again \(restart 1 of 3\)' \
    'a node hangs: why'
kill -CONT "$pid_1"
says 1 'runs on 1 node without this one'
result $? 'a node hangs: once continued, it waits'
: >"$scratch/end"
ends 0,0 'a node waits when the job ends: statuses'
like "$(err 1)" 'dscomm run: the job has ended without this node$' \
    'a node waits when the job ends: it says so'

# Too few nodes
clean
rm -f "$scratch/end"
bounds='--join-timeout 2 --node-timeout 2 --last-call 1 --grace 2'
nodes=3:4
node 0 -n 1 true
node 1 -n 1 true
ends 125,125 'too few nodes: statuses'
like "$(err 0 | grep -v warn)" "^dscomm run: 2 of at least 3 nodes came to $address:29500 within 2 s; the address of --master is loopback" \
    'too few nodes: node 0'
like "$(err 1)" '^dscomm run: node 0: 2 of at least 3 nodes came' 'too few nodes: the other'
clean
nodes=2:3
stay 0 --max-restarts 5
stay 1 --max-restarts 5
up 2 0
kill -KILL "$pid_1"
finish
is "$statuses" 125,137 'too few nodes are left: statuses'
like "$(err 0)" "dscomm run: 1 of at least 2 nodes came to $address:29500 within 2 s" \
    'too few nodes are left: why'
clean
nodes=2:3
node 1 -n 1 true
ends 125 'node 0 does not come'
like "$(err 1)" '^dscomm run: node 0 did not come: no store' 'node 0 does not come: why'

# The end of node 0, and signals
bounds='--join-timeout 60 --node-timeout 4 --last-call 1.5 --grace 2'
clean
nodes=1:2
stay 0 --max-restarts 5
stay 1 --max-restarts 5
up 2 0
kill -KILL "$pid_0"
ends 137,125 'node 0 dies: statuses'
like "$(err 1)" "^dscomm run: node 0 \\(host\\): the store at .*$address.* is gone" \
    'node 0 dies: why'
clean
stay 0 --max-restarts 5
stay 1 --max-restarts 5
up 2 0
kill -TERM "$pid_1"
up 1 1
is "$(worlds 1)" '0 of 1, 1 nodes;' 'a node is told to end: the others go on'
like "$(err 0)" '^dscomm run: node 1 \(host\): dscomm run was told to end by signal 15 .*starting all again \(restart 1 of 5\)' \
    'a node is told to end: why'
stay 2 --max-restarts 5
stay 3 --max-restarts 5
says 2 'runs on 1 node without this one'
says 3 'runs on 1 node without this one'
kill -TERM "$pid_2"
says 2 'told to end by signal 15'
kill -KILL "$(cat "$scratch/pid.0")"
up 2 2
is "$(worlds 2)" '0 of 2, 2 nodes;1 of 2, 2 nodes;' \
    'a node that waits is told to end: the others go on'
kill -TERM "$pid_0"
ends 143,143,143,143 'node 0 is told to end, which ends the job: statuses'
like "$(err 3)" 'node 0 \(host\): dscomm run was told to end by signal 15' \
    'node 0 is told to end: another node'
clean
stay 0
stay 1
up 2 0
kill -TERM "$pid_1"
ends 143,143 'a node is told to end, and no restart is left: statuses'
clean
bounds='--join-timeout 60 --node-timeout 4 --last-call 30 --grace 2'
nodes=2:3
for r in 0 1 2; do
    stay $r --max-restarts 3
done
up 3 0
kill -KILL "$pid_2"
says 0 'starting all again'
sleep 1
kill -TERM "$pid_0"
ends 143,143,137 'a signal while the nodes meet again: statuses'
like "$(err 1)" 'dscomm run: node 0: dscomm run was told to end by signal 15' \
    'a signal while the nodes meet again: the other'
clean
node 0 -n 1 --max-restarts 3 --timeout 3 sh -c '[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exec sleep 600; exit 3'
node 1 -n 1 --max-restarts 3 sleep 600
ends 124,124 'a time-out, restarts included: statuses'

# Nodes of other jobs
clean
bounds='--join-timeout 30 --node-timeout 4 --last-call 1.5'
nodes=2:3
node 0 -n 1 true
"$program" run --nnodes 1:3 --master $address -n 1 true 2>"$scratch/err.7"
is $? 125 'other numbers of nodes: refused'
like "$(cat "$scratch/err.7")" '^dscomm run: node 0 has --nnodes 2:3, this node \(.*\) 1:3; give all nodes of a job the same' \
    'other numbers of nodes: why'
"$program" run --nnodes 3 --node-rank 1 --master $address -n 1 true 2>"$scratch/err.7"
is $? 125 'a node of a job that is not elastic: refused'
like "$(cat "$scratch/err.7")" '^dscomm run: node 0 has --nnodes 2:3, node 1 \(.*\) 3; give all' \
    'a node of a job that is not elastic: why'
node 1 -n 1 true
ends 0,0 "the job's own node comes"
like "$(err 0)" 'refused a node of another job: node 0 has --nnodes 2:3' \
    'node 0 tells of the first'

# Wrong use: ARGUMENTS
while read -r line; do
    # shellcheck disable=SC2086
    runs 2 "status of: $line" -n 1 $line true
done <<'EOF'
--nnodes 2:1 --node-rank 0 --master 127.0.0.1
--nnodes 0:1 --node-rank 0 --master 127.0.0.1
--nnodes 1: --node-rank 0 --master 127.0.0.1
--nnodes :2 --node-rank 0 --master 127.0.0.1
--nnodes 1:2:3 --node-rank 0 --master 127.0.0.1
--nnodes 1:5000 --node-rank 0 --master 127.0.0.1
--nnodes 1:2 --node-rank 1 --master 127.0.0.1
--nnodes 1:2 --node-rank 0
--nnodes 1:2 --node-rank 0 --master 127.0.0.1 --last-call -1
EOF

tap_done
