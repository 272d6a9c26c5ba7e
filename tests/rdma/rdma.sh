#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Backend ibverbs over Soft-RoCE in virtual machines: conformance, training, and what comes
# to an end when a peer, its machine or the link does. rdma.sh NODE COMMAND... is what runs
# in each machine.

if [ "${RDMA_VM:-}" = 1 ]; then
    cd "$abs_top_builddir" || exit 1
    master=${NODE_ADDRS%% *}
    run()
    {
        ranks=$1
        shift
        tools/dscomm run --nnodes "$NODE_COUNT" --node-rank "$NODE_RANK" --master "$master" \
            --join-timeout 120 --node-timeout 20 -n "$ranks" "$@"
    }
    case $1 in
    conformance)
        run "$2" tests/backends/conformance $3 >/tmp/out 2>/tmp/err
        status=$?
        [ "$NODE_RANK" = 0 ] || exit $status
        echo "status $status, $(grep -c '^ok ' /tmp/out) passed, $(grep -c '^not ok' /tmp/out) failed"
        [ $status = 0 ] || { grep -A 3 '^not ok' /tmp/out; tail -n 5 /tmp/err; } >&2
        ;;
    refused)
        for setting in DSCOMM_IBV_NAME=nosuch DSCOMM_IBV_PORT=7 DSCOMM_IBV_INDEX=99; do
            (export "$setting" && run 2 tests/tools/failing none)
        done
        # Root has no limit, unless it lacks that capability.
        (ulimit -l 64 && run 2 setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock \
            tests/tools/failing none)
        rdma link delete rxe0 && run 2 tests/tools/failing none
        ;;
    chosen)
        DSCOMM_LOG=core:info
        export DSCOMM_LOG
        run 2 tests/tools/failing none 2>&1 | grep 'two_level uses'
        DSCOMM_IBV_NAME=rxe0
        export DSCOMM_IBV_NAME
        run 2 tests/backends/conformance p2p 2>&1 | grep 'two_level uses\|^not ok\|^1\.\.'
        # Root has no limit, unless it lacks that capability.
        (ulimit -l 8192 && run 2 setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock \
            tests/tools/failing none 2>&1 | grep 'two_level uses')
        [ "$NODE_RANK" = 0 ] || rdma link delete rxe0
        run 2 tests/tools/failing none 2>&1 | grep 'two_level uses'
        ;;
    campaign) tests/backends/campaign -n 9 -s 1 ;;
    late) tests/backends/net/flood.t ibverbs 10 2 ;;
    flap)
        # Node 1 takes its link down for a moment; then there is a new job.
        [ "$NODE_RANK" = 0 ] ||
            (sleep 6 && ip link set eth0 down && sleep 1 && ip link set eth0 up) &
        run 1 tests/backends/net/rounds 12 && echo 'went on' >&2
        wait
        run 1 tests/backends/conformance p2p >/tmp/out && [ "$NODE_RANK" = 0 ] &&
            echo "then $(grep -c '^ok ' /tmp/out) passed, $(grep -c '^not ok' /tmp/out) failed"
        ;;
    digits) run 1 examples/digits/digits "$abs_top_srcdir/examples/digits/digits.csv.gz" ;;
    killed)
        # Rank 1 kills itself in the middle of the rounds.
        run 2 sh -c '[ "$RANK" = 0 ] || { sleep 4; kill -9 $$; } & exec "$@"' sh \
            tests/backends/net/rounds 60
        ;;
    cut)
        # No packet leaves node 1 for so many seconds.
        [ "$NODE_RANK" = 0 ] || (
            sleep 6 && tc qdisc add dev eth0 root netem loss 100% && read -r from _ </proc/uptime
            sleep "$2" && tc qdisc del dev eth0 root && read -r to _ </proc/uptime
            echo "cut from $from to $to s of uptime" >&2
        ) &
        run 1 tests/backends/net/rounds "$3"
        ;;
    down)
        # Node 1 takes its link down.
        [ "$NODE_RANK" = 0 ] || (sleep 6 && ip link set eth0 down) &
        run 1 tests/backends/net/rounds 60
        ;;
    gone)
        # The machine of node 1 ends without a word. (QEMU writes to the other node with blocking
        # calls, so that an orderly end, in which the card no longer reads, may stop both.)
        [ "$NODE_RANK" = 0 ] || (sleep 6 && echo b >/proc/sysrq-trigger) &
        run 1 tests/backends/net/rounds 60
        ;;
    esac
    exit
fi

. "$abs_top_srcdir/tests/tools/jobs.sh"

vm=$abs_top_srcdir/tests/rdma/vm
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
[ -e "$abs_top_builddir/backends/.libs/ibverbs.so" ] || skip_all 'no backend ibverbs in this build'
command -v qemu-system-x86_64 >/dev/null || skip_all 'no qemu-system-x86_64'
"$vm" -q --setup 2>"$scratch/why" || skip_all "no kernel: $(tail -n 1 "$scratch/why")"

DSCOMM_JOB_SECRET=$(od -An -N 16 -tx1 /dev/urandom | tr -d ' \n')
DSCOMM_BACKEND=ibverbs
export DSCOMM_JOB_SECRET DSCOMM_BACKEND

# nodes COUNT SECONDS WHAT...: runs WHAT on so many machines
nodes()
{
    cpus=$([ "$1" = 1 ] && echo 2 || echo 1)
    count=$1 limit=$2
    shift 2
    "$vm" -q --nodes "$count" --cpus "$cpus" --timeout "$limit" --grace 60 -- sh "$0" "$@" \
        >"$scratch/out" 2>"$scratch/err"
    status=$?
    out=$(cat "$scratch/out") err=$(cat "$scratch/err")
}

told()
{
    sed 's/^/# /' "$scratch/out" "$scratch/err" | tail -n 15
}

# suite NODES RANKS AREA...: the conformance suite
suite()
{
    count=$1 ranks=$2
    shift 2
    nodes "$count" 600 conformance "$ranks" "$*"
    like "$out" 'status 0, [1-9][0-9]* passed, 0 failed' \
        "conformance on $count machines of $ranks ranks" || told
}

for ranks in 1 2 3 4; do
    suite 1 $ranks
done
suite 2 1
DSCOMM_IBV_RING=yes
export DSCOMM_IBV_RING
suite 1 2 p2p matching works access stress
unset DSCOMM_IBV_RING
suite 3 1 collectives p2p matching works

# What auto takes: a device that software emulates only if it is named, and one of hardware
# or with that name only if every node has one.
DSCOMM_BACKEND=auto nodes 2 300 chosen
like "$(echo "$out" | sed -n 1p)" \
    'uses tcp between nodes;.* ibverbs: rank 0 on [^ ]*: device rxe0 is emulated' \
    'auto takes tcp before an emulated device' || told
like "$(echo "$out" | sed -n 2p)" 'uses ibverbs between nodes' \
    'auto takes ibverbs between nodes' || told
like "$out" '[]] 1\.\.[1-9]' 'which serves them'
case $out in
*'not ok'*) result 1 'without a wrong result' ;;
*) result 0 'without a wrong result' ;;
esac
like "$out" 'uses tcp between nodes;.* ibverbs: rank 0 on [^ ]*: .* register 16 MiB' \
    'auto takes tcp if no memory can be registered' || told
like "$(echo "$out" | tail -n 1)" \
    'uses tcp between nodes;.* ibverbs: rank 2 on [^ ]*: this host has no RDMA device' \
    'auto takes tcp if a node has no device' || told

# The losses of training are those of shared memory.
digits=$abs_top_builddir/examples/digits/digits
if [ -x "$digits" ]; then
    nodes 2 300 digits
    cp "$scratch/out" "$scratch/two"
    DSCOMM_BACKEND=shm run -n 2 "$digits" "$abs_top_srcdir/examples/digits/digits.csv.gz"
    same_losses "$scratch/two" "$scratch/out"
    result $? 'training on two machines has the losses of shared memory'
else
    skip 'training on two machines' 'the example is not built'
fi

# With the settings that are the default, under which a device repeats for 7 s
nodes 2 180 cut 1 12
is $status 0 'a link that is cut for a second delays the job' || told

nodes 1 180 late
like "$out" '^1\.\.[1-9]' 'receivers that sleep get all messages' || told
case $out in
*'not ok'*) result 1 'from memory of the stated bound' || told ;;
*) result 0 'from memory of the stated bound' ;;
esac

# What does not fit, each with a sentence
nodes 1 120 refused
like "$err" "DSCOMM_IBV_NAME='nosuch': this host has no such RDMA device" \
    'a device that is not there is refused' || told
like "$err" 'rxe0: it has ports 1 to 1, not DSCOMM_IBV_PORT=7' 'and a port' || told
like "$err" 'it has no GID 99, which DSCOMM_IBV_INDEX names' 'and a GID' || told
like "$err" 'no registered memory: Cannot allocate memory; allow more locked memory .ulimit -l' \
    'a limit of locked memory that is too low is told' || told
like "$err" 'ibverbs cannot serve this world of 2 ranks: rank 0 on [^ ]*: this host has no RDMA device;' \
    'a host without a device is refused' || told

# Ends. A device gives up after 3 to 4 s here.
DSCOMM_IBV_TIMEOUT=17
export DSCOMM_IBV_TIMEOUT
silent='connection to ::ffff:192\.0\.2\.[12]: its device does not answer'
nodes 1 300 campaign
like "$out" 'ok [0-9]* - nothing is left of any job' 'the failure campaign comes to its end' || told
case $out in
*'not ok'*) result 1 'without harm' || told ;;
*) result 0 'without harm' ;;
esac
nodes 1 120 killed
like "$err" 'rank 1 .*(died|was killed by signal 9)' 'a rank that is killed is named' || told
nodes 2 180 cut 40 60
like "$err" "\[0\] .*rank 1 .*$silent" 'one that is cut for longer ends it: rank 0 names rank 1' || told
like "$err" "\[1\] .*rank 0 .*$silent" 'and rank 1 names rank 0' || told
nodes 2 180 down
# The device says so itself, or only that the other one does not answer.
like "$err" "\[1\] .*(rank 0 .*|rank 1 .*its device rxe0 says .*); port 1 of this rank.s device is down" \
    'a port that is down is named' || told
# Soft-RoCE fails if it has something to send then.
nodes 2 240 flap
like "$err" "went on|\[1\] .*rank 1 .*its device rxe0 says .*; port 1 of this rank.s device (is|was) down" \
    'so is one that is down for a moment, or the job goes on' || told
like "$out" 'then [1-9][0-9]* passed, 0 failed' 'after which a new job works' || told
nodes 2 180 gone
like "$err" "\[0\] .*rank 1 .*$silent" 'a machine that is switched off is named' || told
tap_done
