#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm run on several nodes, all of which are this machine: one address of
# loopback that no other test has.

. "$abs_top_srcdir/tests/tools/jobs.sh"

trap 'kill_started; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

address=127.$((1 + $$ / 65536)).$(($$ / 256 % 256)).$(($$ % 256))
host=$(uname -n)
bounds='--join-timeout 30 --node-timeout 4 --grace 3'

# node R ARGUMENT...: starts dscomm run as node R
node()
{
    r=$1
    shift
    # Split on purpose: one word an option.
    # shellcheck disable=SC2086
    start_node "$r" "$program" run --nnodes "$nodes" --node-rank "$r" \
        --master $address $bounds "$@"
}

# all N ARGUMENT...: as N nodes, to their end
all()
{
    nodes=$1
    shift
    rm -f "$scratch"/out.* "$scratch"/err.* "$scratch"/up.*
    n=$nodes
    while [ "$n" -gt 0 ]; do
        n=$((n - 1))
        node $n "$@"
    done
    finish
}

# says R TEXT: waits until node R does
says()
{
    until_true grep -q "$2" "$scratch/err.$1" 2>/dev/null
}

# The environment; nodes of different sizes
nodes=3
node 2 -n 1 sh -c "$(cat <<'END'
echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK \
    $GROUP_WORLD_SIZE $ROLE_RANK $ROLE_WORLD_SIZE $MASTER_ADDR $MASTER_PORT \
    $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS \
    $TORCHELASTIC_USE_AGENT_STORE
END
)"
node 0 -n 2 sh -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK'
node 1 -n 3 sh -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK'
ends 0,0,0 'three nodes: statuses'
is "$(sort "$scratch/out")" "0 6 0 2 0
1 6 1 2 0
2 6 0 3 1
3 6 1 3 1
4 6 2 3 1
5 6 0 1 2 3 5 6 $address 29500 0 0 True" 'ranks of nodes of different sizes'
all 2 -n 2 sh -c 'echo $TORCHELASTIC_RUN_ID'
is "$(sort -u "$scratch/out" | grep -Ec '^[0-9a-f]{32}$') $(sort -u "$scratch/out" | wc -l | tr -d ' ')" \
    '1 1' 'one id for all'
all 2 -n 1 --rdzv-id job.1_a-b sh -c 'echo $TORCHELASTIC_RUN_ID'
is "$(sort -u "$scratch/out")" job.1_a-b 'the id that is given'
DSCOMM_TIMEOUT=60 all 2 -n 2 "$abs_top_builddir/examples/hello/hello"
is "$(sort "$scratch/out")" 'rank 0 of 4: the sum of all ranks is 6
rank 1 of 4: the sum of all ranks is 6
rank 2 of 4: the sum of all ranks is 6
rank 3 of 4: the sum of all ranks is 6' 'a world over nodes'
all 1 -n 2 sh -c 'echo $RANK $MASTER_ADDR $MASTER_PORT ${DSCOMM_JOB_SECRET:+secret}'
is "$(sort "$scratch/out" | tr '\n' ' ')" \
    "0 $address 29500 secret 1 $address 29500 secret " \
    'one node, at the address that is given, has a secret'

# torchrun's words
for words in '--nproc-per-node 2 --master-addr %s --master-port 29511' \
    '--nproc_per_node=2 --master_addr=%s --master_port=29511' \
    '-n2 --rdzv_endpoint %s:29511' '-n 2 --master [::1]:29511'; do
    # shellcheck disable=SC2059
    words=$(printf -- "$words" $address)
    for r in 0 1; do
        # shellcheck disable=SC2086
        start_node $r "$program" run --nnodes=2 --node_rank=$r $words \
            --join-timeout 30 sh -c 'echo $RANK $WORLD_SIZE $MASTER_PORT'
    done
    finish
    if grep -q ::1 "$scratch/err.0"; then
        skip "$words" 'no IPv6 on loopback'
        continue
    fi
    is "$statuses $(sort "$scratch/out" | tr '\n' ' ')" \
        '0,0 0 4 29511 1 4 29511 2 4 29511 3 4 29511 ' "$words"
done

# Nodes that end early wait for the others
all 2 -n 1 sh -c '[ $RANK = 0 ] || sleep 0.7'
is "$statuses" 0,0 'a node that is done waits'
all 2 -n 1 sh -c '[ $RANK = 0 ] || { sleep 0.5; exit 4; }'
is "$statuses" 4,4 'and hears of a failure after that'

# Failures
all 2 -n 2 sh -c '[ $RANK = 3 ] && exit 7; exec sleep 600'
is "$statuses" 7,7 'a rank fails: all nodes have its status'
is "$(err 1)" 'dscomm run: rank 3 (pid) exited with status 7; ending rank 2' \
    'a rank fails: its node'
is "$(err 0)" 'dscomm run: node 1 (host): rank 3 (pid) exited with status 7; ending ranks 0-1' \
    'a rank fails: the other node'
all 3 -n 1 sh -c '[ $RANK = 1 ] && kill -SEGV $$; exec sleep 600'
is "$statuses" 139,139,139 'killed by a signal: statuses'
like "$(err 2)" '^dscomm run: node 1 \(host\): rank 1 \(pid\) was killed by signal 11 \(.*\); ending rank 2$' \
    'killed by a signal: another node'
nodes=2
node 1 -n 1 no-such-program-anywhere
node 0 -n 1 sleep 600
ends 127,127 'no program on one node'
is "$(err 0)" 'dscomm run: node 1 (host): not all of its ranks could be started; ending rank 0' \
    'no program on one node: the other'
node 0 -n 1 --timeout 0.7 sleep 600
node 1 -n 1 sleep 600
ends 124,124 'time-out of one node'
is "$(err 1)" 'dscomm run: node 0 (host): rank 0 still ran after 0.7 s; ending rank 1' \
    'time-out of one node: the other'
node 0 -n 1 --timeout 0.7 true
node 1 -n 1 sleep 600
ends 124,124 'time-out of a node that is done'
is "$(err 0)" 'dscomm run: other nodes still ran after 0.7 s; ending them' \
    'time-out of a node that is done: its word'
is "$(err 1)" 'dscomm run: node 0 (host): other nodes still ran after 0.7 s; ending rank 1' \
    'time-out of a node that is done: the other'

# pair: two nodes with a rank each that is up and stays
pair()
{
    nodes=2
    rm -f "$scratch"/up.*
    for r in 0 1; do
        node $r -n 1 sh -c 'echo $$ >"$1/up.$RANK"; exec sleep 600' sh "$scratch"
    done
    appears 2 "$scratch/up.0" "$scratch/up.1"
}

pair
kill -TERM "$pid_1"
ends 143,143 'a node is told to end'
is "$(err 0)" 'dscomm run: node 1 (host): dscomm run was told to end by signal 15 (Terminated); ending rank 0' \
    'a node is told to end: the other'
pair
kill -HUP "$pid_0"
ends 129,129 'node 0 is told to end'
pair
kill -KILL "$pid_1"
ends 125,137 'dscomm run of node 1 is killed'
is "$(err 0)" 'dscomm run: node 1 (host): dscomm run (pid) was killed; ending rank 0' \
    'dscomm run of node 1 is killed: node 0'
gone "$scratch"/up.*
result $? 'dscomm run of node 1 is killed: no rank is left'
pair
kill -KILL "$pid_0"
ends 137,125 'dscomm run of node 0 is killed'
like "$(err 1)" "^dscomm run: node 0 \\(host\\): the store at .*$address.* is gone" \
    'dscomm run of node 0 is killed: node 1'
gone "$scratch"/up.*
result $? 'dscomm run of node 0 is killed: no rank is left'
for r in 0 1; do
    pair
    eval "kill -STOP \$pid_$r"
    eval "wait \$pid_$((1 - r))"
    is $? 125 "node $r hangs: the other's status"
    eval "kill -CONT \$pid_$r"
    finish
    like "$(err $((1 - r)))" "^dscomm run: node $r \\(host\\): .*; ending rank $((1 - r))\$" \
        "node $r hangs: the other"
    gone "$scratch"/up.*
    result $? "node $r hangs: no rank is left"
done

# Coming together
bounds='--join-timeout 1.5 --node-timeout 3'
before=$(date +%s)
nodes=4
node 0 -n 1 true
node 2 -n 1 true
ends 125,125 'nodes that do not come: statuses'
for r in 0 2; do
    like "$(err $r)" '^dscomm run: nodes 1, 3 of 4 did not come to '"$address"':[0-9]+ within 1.5 s; the address of --master is loopback here' \
        "nodes that do not come: node $r names them"
done
nodes=2
node 1 -n 1 true
ends 125 'node 0 does not come: status'
like "$(err 1)" '^dscomm run: node 0 of 2 did not come: no store within 1[0-9]+ ms' \
    'node 0 does not come: node 1'
[ $(($(date +%s) - before)) -lt 20 ]
result $? 'in time'
# Nodes of other jobs: ARGUMENTS-0|ARGUMENTS-OF-THE-STRANGER|WHAT IT IS TOLD
# The first is refused while the job waits for its own, and told of; the second
# one with the same is refused without another word.
bounds='--join-timeout 60 --node-timeout 5'
while IFS='|' read -r first other want; do
    nodes=2
    # shellcheck disable=SC2086
    node 0 -n 1 $first sh -c 'echo $RANK'
    for again in '' ' again'; do
        # shellcheck disable=SC2086
        "$program" run --nnodes 2 --node-rank 1 \
            --master $address -n 1 $first $other true 2>"$scratch/err.2"
        is "$? $(err 2)" "125 dscomm run: $want" "$first and $other: refused$again"
    done
    # shellcheck disable=SC2086
    node 1 -n 1 $first sh -c 'echo $RANK'
    finish
    is "$statuses $(sort "$scratch/out" | tr '\n' ' ')" '0,0 0 1 ' \
        "$first and $other: the job's own node comes"
    is "$(err 0 | grep -v "^dscomm run: refused a node of another job: $want\$")" '' \
        "$first and $other: node 0 says no more than that"
done <<'END'
--rdzv-id a|--rdzv-id b|node 0 has --rdzv-id 'a', node 1 (host) 'b'; give all nodes of a job the same, and each job its own port
--max-restarts 0|--rdzv-id b|node 0 has no --rdzv-id, node 1 (host) 'b'; give all nodes of a job the same, and each job its own port
--max-restarts 0|--nnodes 3|node 0 has --nnodes 2, node 1 (host) 3; give all nodes of a job the same, and each job its own port
--max-restarts 2|--max-restarts 1|node 0 has --max-restarts 2, node 1 (host) 1; give all nodes of a job the same, and each job its own port
END
bounds='--join-timeout 3 --node-timeout 5'
nodes=3
node 0 -n 1 true
node 1 --nnodes 2 -n 1 true
finish
why='node 0 has --nnodes 3, node 1 (host) 2; give all nodes of a job the same, and each job its own port'
is "$statuses" 125,125 'only a node of another job comes: statuses'
is "$(err 1)" "dscomm run: $why" 'only a node of another job comes: it is told'
is "$(err 0)" "dscomm run: refused a node of another job: $why
dscomm run: nodes 1, 2 of 3 did not come to $address:29500 within 3 s; $why" \
    'only a node of another job comes: node 0'
# Secrets that differ, or of which one node has none: SECRET-0|SECRET-1|WHAT IT HAS
# Node 0 ends at once, because the kernel says that the other is of the same user,
# and it is of the same job.
bounds='--join-timeout 300 --node-timeout 5'
while IFS='|' read -r first other has; do
    nodes=2
    DSCOMM_JOB_SECRET=$first node 0 -n 1 true
    DSCOMM_JOB_SECRET=$other node 1 -n 1 true
    who="dscomm run --nnodes 2 --max-restarts 0 (pid $pid on $host)"
    ends 125,125 "secrets '$first' and '$other': statuses"
    is "$(err 0 | grep -v 'dscomm: warn:' |
        sed "s/127.0.0.1:[0-9]*, which/ADDRESS, which/")" \
        "dscomm run: 1 connection was refused at node 0's store, from ADDRESS, \
which says that it is $who: it has $has; give all processes of the job the same \
DSCOMM_JOB_SECRET or DSCOMM_JOB_SECRET_FILE, or none of them one" \
        "secrets '$first' and '$other': node 0"
    like "$(err 1)" '^dscomm run: node 0 of 2 did not come: the store at .* same DSCOMM_JOB_SECRET' \
        "secrets '$first' and '$other': node 1"
done <<'END'
0123456789abcdef|0123456789abcdeF|another job secret than node 0, or none
0123456789abcdef||another job secret than node 0, or none
|0123456789abcdef|a job secret, and node 0 has none
END
# The same, but of another job: node 0 waits for its own.
bounds='--join-timeout 60 --node-timeout 5'
for other in '--rdzv-id b' '--nnodes 3' '--max-restarts 1'; do
    nodes=2
    export DSCOMM_JOB_SECRET=0123456789abcdef
    node 0 -n 1 --rdzv-id a sh -c 'echo $RANK'
    # shellcheck disable=SC2086
    DSCOMM_JOB_SECRET=0123456789abcdeF \
        "$program" run --nnodes 2 --node-rank 1 \
        --master $address -n 1 --rdzv-id a $other true 2>"$scratch/err.2"
    is $? 125 "another secret and $other: refused"
    sleep 1 # node 0 looks for reports twice a second
    node 1 -n 1 --rdzv-id a sh -c 'echo $RANK'
    finish
    unset DSCOMM_JOB_SECRET
    is "$statuses $(sort "$scratch/out" | tr '\n' ' ')" '0,0 0 1 ' \
        "another secret and $other: the job's own node comes"
done
# What no node is told of until the time is over.
bounds='--join-timeout 8 --node-timeout 5'
nodes=2
DSCOMM_JOB_SECRET=0123456789abcdef node 0 -n 1 true
DSCOMM_JOB_SECRET=0123456789abcdeF node 1 -n 1 --rdzv-id b true
ends 125,125 'only a node of another job and secret comes: statuses'
like "$(err 0)" "^dscomm run: node 1 of 2 did not come to $address:29500 within 8 s; 1 connection was refused at node 0's store, from .*, which says that it is dscomm run --nnodes 2 --max-restarts 0 --rdzv-id b " \
    'only a node of another job and secret comes: node 0'
bounds='--join-timeout 40 --node-timeout 5'
nodes=2
node 1 -n 1 true
says 1 'waiting for node 0'
node 0 -n 1 sh -c 'echo $RANK'
finish
like "$(err 1)" "^dscomm run: waiting for node 0: no store within 5000 ms: .*$address" \
    'who is waited for: node 0'
is "$statuses $(cat "$scratch/out")" '0,0 0' 'who is waited for comes at last'
nodes=3
node 0 -n 1 true
node 1 -n 1 true
sleep 0.5
kill -KILL "$pid_1"
wait "$pid_1" 2>/dev/null
started=0
node 1 -n 1 true
says 0 'waiting for'
is "$(err 0)" 'dscomm run: waiting for node 2 of 3' 'who is waited for: node 2'
"$program" run --nnodes 3 --node-rank 1 --master $address \
    -n 1 true 2>"$scratch/twice"
is $? 125 'one number twice: status'
like "$(cat "$scratch/twice")" "^dscomm run: node 1 is there already \\(pid $pid_1 on .*\\); give each node its own --node-rank" \
    'one number twice'
node 2 -n 1 true
ends 0,0,0 'the others go on'
pair
"$program" run --nnodes 2 --node-rank 0 --master $address \
    -n 1 true 2>"$scratch/twice"
is $? 125 'a port in use: status'
like "$(cat "$scratch/twice")" "^dscomm run: node 0 cannot serve the job's store: .*29500" \
    'a port in use'
kill "$pid_0"
finish

# Strangers at the store
put=$abs_top_builddir/tests/tools/put
url=tcp://$address:29500
bounds='--join-timeout 20 --node-timeout 5'
nodes=2
for record in '' 'dscomm-run 2
0
2
-1
0
7

stranger' 'dscomm-run 2
0
2
1
0
7

stranger
more'; do
    node 0 -n 1 true
    "$put" "$url" dscomm-run/node/1 "$record"
    finish
    is "$statuses $(err 0)" '125 dscomm run: what node 1 says of itself makes no sense: give all nodes the same version of dscomm' \
        'a record that is none'
done

# Node 1, which has left a record of 2 ranks, comes again with another number: while
# the job waits for node 2, and when it has begun
old='dscomm-run 2
0
3
2
0
7

stranger'
nodes=3
rm -f "$scratch"/out.* "$scratch"/up.*
node 0 -n 1 sh -c 'echo $RANK $WORLD_SIZE'
"$put" "$url" dscomm-run/node/1 "$old"
node 1 -n 3 sh -c 'echo $RANK $WORLD_SIZE'
"$put" "$url" dscomm-run/claim/1
node 2 -n 1 sh -c 'echo $RANK $WORLD_SIZE'
finish
is "$statuses $(sort "$scratch/out" | tr '\n' ' ')" '0,0,0 0 5 1 5 2 5 3 5 4 5 ' \
    'a node comes again with more ranks, in time'
rm -f "$scratch"/out.*
node 0 -n 1 sleep 60
"$put" "$url" dscomm-run/node/1 "$old"
node 2 -n 1 sh -c ">$scratch/up.2; exec sleep 60"
appears 1 "$scratch/up.2"
node 1 -n 1 true
finish
why='was started again with 1 ranks, when the job had begun with 2: start it with as many, or the whole job anew'
is "$statuses" 125,125,125 'a node comes again with less ranks, too late: statuses'
is "$(err 1)" "dscomm run: node 1 $why" 'too late: it is told'
like "$(err 0)" "node 1 .*$why" 'too late: node 0 is told'
nodes=2
for end in '' x '5 0 x' '-2 3 x' '1 256 x'; do
    pair
    "$put" "$url" dscomm-run/end "$end"
    ends 125,125 "an end of '$end'"
    like "$(err 1)" "^dscomm run: what the nodes' store says makes no sense; .*; ending rank 1\$" \
        "an end of '$end': it is told"
done
export DSCOMM_JOB_SECRET=0123456789abcdef
"$program" run -n 1 --master $address sleep 600 \
    2>"$scratch/err.0" &
pid_0=$!
node 1 -n 1 true
finish
unset DSCOMM_JOB_SECRET
is "$statuses $(err 1)" '125 dscomm run: node 0 has --nnodes 1, node 1 (host) 2; give all nodes of a job the same, and each job its own port' \
    'the store of another job'
kill $pid_0
wait $pid_0

# Restarts
rm -f "$scratch"/count.*
fail_twice='echo $RANK $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS
    [ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0
    [ $RANK != 1 ] || exit 3
    exec sleep 600'
runs 0 'restarts on one node: status' -n 2 --max-restarts 3 sh -c "$fail_twice"
is "$(sort "$scratch/out" | grep '^1\|2 3$' | tr '\n' ,)" '0 2 3,1 0 3,1 1 3,1 2 3,' \
    'restarts on one node: the count'
is "$(sed 's/(pid [0-9]*)/(pid)/' "$scratch/err")" \
    'dscomm run: rank 1 (pid) exited with status 3; ending rank 0; starting all again (restart 1 of 3)
dscomm run: rank 1 (pid) exited with status 3; ending rank 0; starting all again (restart 2 of 3)' \
    'restarts on one node: messages'
runs 3 'too many failures: status' -n 2 --max-restarts 1 sh -c "$fail_twice"
is "$(tail -n 1 "$scratch/err" | sed 's/(pid [0-9]*)/(pid)/')" \
    'dscomm run: rank 1 (pid) exited with status 3; ending rank 0' \
    'too many failures: message'
runs 124 'the time-out is that of all attempts' \
    -n 1 --max-restarts 5 --timeout 1 sh -c 'sleep 0.3; exit 1'
run -n 1 --max-restarts 1 sh -c '
    [ $TORCHELASTIC_RESTART_COUNT = 1 ] ||
        echo "{\"message\": \"old\"}" >"$TORCHELASTIC_ERROR_FILE"
    exit 1'
is "$(grep -c ': old$' "$scratch/err")" 1 'the reason of an attempt is told once'
all 2 -n 2 --max-restarts 3 sh -c "$fail_twice"
is "$statuses" 0,0 'restarts on two nodes: statuses'
is "$(sort "$scratch/out" | grep '^1\|2 3$' | tr '\n' ,)" \
    '0 2 3,1 0 3,1 1 3,1 2 3,2 2 3,3 2 3,' \
    'restarts on two nodes: the count'
is "$(err 1 | sort -u)" 'dscomm run: node 0 (host): rank 1 (pid) exited with status 3; ending ranks 2-3; starting all again (restart 1 of 3)
dscomm run: node 0 (host): rank 1 (pid) exited with status 3; ending ranks 2-3; starting all again (restart 2 of 3)' \
    'restarts on two nodes: messages of the other'
all 2 -n 1 --max-restarts 1 sh -c '[ $RANK = 0 ] ||
    { [ $TORCHELASTIC_RESTART_COUNT = 1 ] || { sleep 0.5; exit 4; }; }; echo $RANK'
is "$statuses $(sort "$scratch/out" | tr '\n' ' ')" '0,0 0 0 1 ' \
    'a node that was done starts again'
all 2 -n 1 --max-restarts 1 sh -c '[ $RANK = 0 ] || exit 6; exec sleep 600'
is "$statuses" 6,6 'too many failures on two nodes'
DSCOMM_TIMEOUT=60 all 2 -n 2 --max-restarts 1 sh -c '
    [ $RANK$TORCHELASTIC_RESTART_COUNT = 20 ] && exit 1; exec "$1"' sh \
    "$abs_top_builddir/examples/hello/hello"
is "$statuses $(grep -c 'of 4: the sum of all ranks is 6$' "$scratch/out")" '0,0 4' \
    'a world after a restart'

# Logs
all 2 -n 2 --rdzv-id logged --log-dir "$scratch/logs/new" --max-restarts 1 sh -c '
    echo out $RANK; echo err $RANK >&2
    [ $RANK$TORCHELASTIC_RESTART_COUNT != 30 ] || exit 1
    [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec sleep 600'
is "$statuses $(cat "$scratch/out")" '0,0 ' 'logs: nothing elsewhere'
is "$(cd "$scratch/logs/new" && find . -name '*.log' | LC_ALL=C sort | head -n 4)" \
    './logged/attempt_0/0/stderr.log
./logged/attempt_0/0/stdout.log
./logged/attempt_0/1/stderr.log
./logged/attempt_0/1/stdout.log' 'logs: their names'
is "$(cat "$scratch"/logs/new/logged/attempt_1/*/stdout.log "$scratch"/logs/new/logged/attempt_1/3/stderr.log | tr '\n' ,)" \
    'out 0,out 1,out 2,out 3,err 3,' 'logs: what they hold'
all 2 -n 2 --rdzv-id tagged --log-dir "$scratch/logs" --tag-output sh -c '
    echo out $RANK; printf err >&2'
is "$(sort "$scratch/out" | tr '\n' ,)" '[0]: out 0,[1]: out 1,[2]: out 2,[3]: out 3,' \
    'logs: both there and here'
is "$(cat "$scratch"/logs/tagged/attempt_0/*/stdout.log "$scratch"/logs/tagged/attempt_0/*/stderr.log | tr '\n' ,)" \
    'out 0,out 1,out 2,out 3,errerrerrerr' 'logs: as they were written'
echo >"$scratch/file"
runs 125 'logs: no folder' -n 1 --log-dir "$scratch/file" true
like "$err" "^dscomm run: cannot make '.*/file': " 'logs: why not'

# Nobody else reads the logs, or leads them elsewhere by a link that is there first.
is "$(stat -c %a "$scratch/logs/tagged")" 700 'logs: the folder of a job is its own'
target=$scratch/target
mkdir "$target"
while read -r folder link; do
    rm -rf "$scratch/linked"
    mkdir -p "$scratch/linked/$folder"
    case $link in
    *.log) ln -s "$target/file" "$scratch/linked/$link" ;;
    *) ln -s "$target" "$scratch/linked/$link" ;;
    esac
    runs 125 "logs: a link for $link" \
        -n 1 --rdzv-id x --log-dir "$scratch/linked" echo out
    like "$err" "^dscomm run: cannot (use|make) '.*/linked/$link': " \
        "logs: $link is named"
    is "$(ls "$target")" '' "logs: nothing is behind $link"
done <<'END'
. x
x x/attempt_0
x/attempt_0 x/attempt_0/0
x/attempt_0/0 x/attempt_0/0/stdout.log
x/attempt_0/0 x/attempt_0/0/stderr.log
END
rm -rf "$scratch/linked"
ln -s target "$scratch/linked"
run -n 1 --rdzv-id x --log-dir "$scratch/linked" echo out
is "$status $(cat "$target/x/attempt_0/0/stdout.log")" '0 out' "logs: the user's own link"
if [ "$(id -u)" = 0 ] && chown -R 65534 "$target/x"; then
    runs 125 "logs: another user's folder" -n 1 --rdzv-id x --log-dir "$target" true
    like "$err" "^dscomm run: cannot use '.*/target/x': it belongs to user 65534; " \
        "logs: another user's folder is named"
else
    skip "logs: another user's folder" 'needs root, to make one'
fi

# Another user's link is followed neither as DIR nor on the way to it.
rm -rf "$target"
mkdir "$target"
if [ "$(id -u)" = 0 ] && chown -h 65534 "$scratch/linked"; then
    for path in linked linked/ linked/. linked/new; do
        runs 125 "logs: another user's link in $path" \
            -n 1 --rdzv-id x --log-dir "$scratch/$path" true
        like "$err" \
            "^dscomm run: cannot use '.*/linked': it is a symbolic link of user 65534; " \
            "logs: another user's link in $path is named"
        is "$(ls "$target")" '' "logs: nothing is behind another user's link in $path"
    done
else
    skip "logs: another user's link" 'needs root, to make one'
fi

# logs_refuse WHAT WHERE: the log of a job is not written, since WHERE is WHAT
logs_refuse()
{
    timeout 60 "$program" run -n 1 --rdzv-id y --log-dir "$scratch/found" echo out \
        2>"$scratch/err.0"
    is $? 125 "logs: $1"
    like "$(err 0)" "^dscomm run: cannot (use|make) '.*/found/$2': " \
        "logs: $1 is named"
}
log=y/attempt_0/0/stdout.log
(umask 0 && mkdir -p "$scratch/found/y/attempt_0/0")
logs_refuse 'a folder that others write to' y
chmod 755 "$scratch/found/y"
logs_refuse 'a folder below that others write to' y/attempt_0
chmod 755 "$scratch/found/y/attempt_0" "$scratch/found/y/attempt_0/0"
mkfifo "$scratch/found/$log"
logs_refuse 'a FIFO without a reader' $log
exec 9<>"$scratch/found/$log"
logs_refuse 'a FIFO with a reader' $log
exec 9<&-
rm "$scratch/found/$log"
touch "$scratch/found/$log"
if [ "$(id -u)" = 0 ] && chown 65534 "$scratch/found/$log"; then
    logs_refuse "another user's file" $log
else
    skip "logs: another user's file" 'needs root, to make one'
fi
(umask 0 && run -n 1 --rdzv-id z --log-dir "$scratch/found" true)
is "$(cd "$scratch/found/z" && stat -c %a . attempt_0 attempt_0/0 attempt_0/0/*.log | tr '\n' ' ')" \
    '700 755 755 644 644 ' 'logs: only their user writes there'

# Wrong use: STATUS ARGUMENTS
while read -r want line; do
    # shellcheck disable=SC2086
    runs "$want" "status of: $line" -n 1 $line true
done <<'END'
2 --nnodes 2
2 --nnodes 2 --node-rank 0
2 --nnodes 2 --master 127.0.0.1
2 --nnodes 2 --node-rank 2 --master 127.0.0.1
2 --nnodes 2 --node-rank -1 --master 127.0.0.1
2 --nnodes 0 --master 127.0.0.1
2 --nnodes 5000 --node-rank 0 --master 127.0.0.1
2 --nnodes x
2 --node-rank 1
2 --nnodes 2 --node-rank 0 --master 127.0.0.1:0
2 --nnodes 2 --node-rank 0 --master 127.0.0.1:65536
2 --nnodes 2 --node-rank 0 --master :29500
2 --nnodes 2 --node-rank 0 --master [::1
2 --nnodes 2 --node-rank 0 --master [::1]x
2 --nnodes 2 --node-rank 0 --master [h]:1
2 --nnodes 2 --node-rank 0 --master [127.0.0.1]:1
2 --nnodes 2 --node-rank 0 --master 127.0.0.1:
2 --nnodes 2 --node-rank 0 --master-port 29500
2 --nnodes 2 --node-rank 0 --master-addr 127.0.0.1 --master-port 70000
2 --master 127.0.0.1 --master-port 29500
2 --max-restarts -1
2 --rdzv-id a/b
2 --rdzv-id ..
2 --log-dir=
2 --join-timeout -1
2 --node-timeout 0
2 --node-timeout nan
0 --nnodes 1
2 --nnodes 2 --node-rank 0 --master ::1:42401
2 --nnodes 2 --node-rank 0 --master ::1
2 --nnodes 2 --node-rank 0 --master-addr ::1:42401
0 --nnodes 1 --node-rank 0 --max-restarts 3
END
run -n 1 --nnodes 2 --node-rank 0 --master ::1:42401 true
is "$err" "dscomm run: --master '::1:42401': an IPv6 address needs brackets, as in [::1]:29500" \
    'an address of IPv6 without brackets'
run -n 1 --master-addr ::1 sh -c 'echo $MASTER_ADDR'
if grep -q ::1 "$scratch/err"; then
    skip 'an address of IPv6 alone' 'no IPv6 on loopback'
else
    is "$out" ::1 'an address of IPv6 alone'
fi

tap_done
