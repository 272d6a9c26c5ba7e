#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Backend tcp between hosts: network namespaces with a name and loopback of their own,
# joined by a bridge. dscomm run starts the ranks of each; no MPI.

. "$abs_top_srcdir/tests/tools/jobs.sh"

base=dscomm-$$
hosts=4
[ "$(id -u)" = 0 ] || skip_all 'network namespaces need root'
for command in ip nsenter unshare; do
    command -v $command >/dev/null || skip_all "no $command"
done
teardown()
{
    kill_started
    for host in 0 1 2 3 net lone; do
        ip netns del $base-$host 2>/dev/null
    done
}
trap 'teardown; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# add_host R: host R, at 10.98.0.(R + 1) and fd98::(R + 1), with a port of the bridge
add_host()
{
    ip netns add $base-$1 &&
        ip -n $base-$1 link set lo up &&
        ip -n $base-$1 link add eth0 type veth peer name port$1 netns $base-net &&
        ip -n $base-$1 address add 10.98.0.$(($1 + 1))/24 dev eth0 &&
        { [ ! -e /proc/sys/net/ipv6 ] ||
            ip -n $base-$1 address add fd98::$(($1 + 1))/64 dev eth0 nodad; } &&
        ip -n $base-$1 link set eth0 up &&
        ip -n $base-net link set port$1 master bridge &&
        ip -n $base-net link set port$1 up
}

{
    ip netns add $base-net && ip -n $base-net link add bridge type bridge &&
        ip -n $base-net link set bridge up &&
        add_host 0 && add_host 1 && add_host 2 && add_host 3
} 2>"$scratch/why" || skip_all "no hosts: $(tail -n 1 "$scratch/why")"

# on R COMMAND...: becomes COMMAND on host R
on()
{
    r=$1
    shift
    exec nsenter --net=/run/netns/$base-"$r" unshare -u sh -c \
        'hostname "$1" && shift && exec "$@"' sh host"$r" "$@"
}
on 0 true 2>"$scratch/why" & wait $! || skip_all "no programs there: $(tail -n 1 "$scratch/why")"

DSCOMM_JOB_SECRET=$(od -An -N 16 -tx1 /dev/urandom | tr -d ' \n')
export DSCOMM_JOB_SECRET

# job NODES RANKS COMMAND...: RANKS ranks on each of the first NODES hosts; node 0 last,
# and its status in $statuses last
job()
{
    nodes=$1 ranks=$2
    shift 2
    rm -f "$scratch"/out.* "$scratch"/err.*
    r=$nodes
    while [ $r -gt 0 ]; do
        r=$((r - 1))
        start_node $r on $r "$program" run --nnodes $nodes --node-rank $r \
            --master 10.98.0.1 --join-timeout 60 -n "$ranks" "$@"
    done
}

# suite TEXT NODES RANKS AREA...: the conformance suite
suite()
{
    text=$1
    shift
    nodes=$1 ranks=$2
    shift 2
    job "$nodes" "$ranks" "$abs_top_builddir/tests/backends/conformance" "$@"
    finish
    lines=$(grep -c '^ok ' "$scratch/out.0")
    [ "$lines" -gt 5 ] && ! grep -q '^not ok' "$scratch/out.0" &&
        grep -q "^1\.\.$lines$" "$scratch/out.0"
    result $? "$text" || grep -h '^not ok\|^#\|dscomm' "$scratch"/out.0 "$scratch"/err.* |
        sed 's/^/# /' | head -n 40
}

DSCOMM_BACKEND=tcp suite 'two hosts of one rank' 2 1
DSCOMM_BACKEND=tcp suite 'two hosts of two ranks' 2 2 collectives p2p matching works failures
DSCOMM_BACKEND=tcp suite 'four hosts' 4 1 collectives p2p works groups
suite 'two hosts, shared memory inside' 2 2 collectives reductions p2p matching works groups aborted failures
suite 'four hosts, shared memory inside' 4 2 collectives works

if [ -e /proc/sys/net/ipv6 ]; then
    DSCOMM_BACKEND=tcp DSCOMM_SOCKET_IFNAME=fd98::/16 suite 'two hosts by IPv6' 2 1 \
        collectives p2p matching
else
    skip 'two hosts by IPv6' 'this kernel has no IPv6'
fi

# auto takes two levels; tcp where each host has one rank.
for ranks in 1 2; do
    job 2 $ranks sh -c 'DSCOMM_LOG=debug exec "$@"' sh "$abs_top_builddir/tests/tools/failing" none
    finish
    wanted='backend tcp is chosen'
    [ $ranks = 1 ] || wanted='backend two_level is chosen'
    like "$(cat "$scratch/err.0")" "$wanted" "auto with $ranks a host: $wanted"
done

# The same training on two hosts and on one gives the same loss.
digits=$abs_top_builddir/examples/digits/digits
data=$abs_top_srcdir/examples/digits/digits.csv.gz
if [ -x "$digits" ]; then
    job 2 2 "$digits" "$data"
    finish
    cp "$scratch/out.0" "$scratch/two"
    run -n 4 "$digits" "$data"
    same_losses "$scratch/two" "$scratch/out"
    result $? 'training on two hosts has the losses of training on one'
else
    skip 'training on two hosts' 'the example is not built'
fi

# A link that is cut: shortly, so that the job goes on, also where that takes the host's
# address of IPv6; and for longer than the deadline, so that each rank names one of the
# other host.
# cut HOST DEVICE SECONDS
cut()
{
    ip -n "$base-$1" link set "$2" down
    sleep "$3"
    ip -n "$base-$1" link set "$2" up
}
DSCOMM_TIMEOUT=20 job 2 1 "$abs_top_builddir/tests/backends/net/rounds" 4
sleep 1.5
cut net port1 1
finish
is "$statuses" '0,0' 'a link that is cut for a second delays the job'
DSCOMM_TIMEOUT=20 job 2 1 "$abs_top_builddir/tests/backends/net/rounds" 4
sleep 1.5
cut 1 eth0 1
finish
is "$statuses" '0,0' 'a host that takes its link down for a second delays the job'
DSCOMM_TIMEOUT=4 job 2 1 "$abs_top_builddir/tests/backends/net/rounds" 60
sleep 1.5
cut net port1 12
finish
like "$(cat "$scratch/err.0")" 'rank 1' 'a link that is cut for longer ends it: rank 0 names rank 1'
like "$(cat "$scratch/err.1")" 'rank 0' 'and rank 1 names rank 0'

DSCOMM_TIMEOUT=3 job 2 1 sh -c 'echo $$ >"$1.$RANK"; exec "$2" 60' sh "$scratch/pid" \
    "$abs_top_builddir/tests/backends/net/rounds"
sleep 2
kill -STOP "$(cat "$scratch/pid.1")"
finish
like "$(cat "$scratch/err.0")" "^record: rank 1, pid $(cat "$scratch/pid.1") on host1" \
    "the record of a time-out has the other host's process"

# Two networks side by side: long messages go by both, in both directions, whichever side
# has connected.
sent()
{
    ip netns exec $base-$1 cat /sys/class/net/"$2"/statistics/tx_bytes
}
ip -n $base-net link add bridge1 type bridge && ip -n $base-net link set bridge1 up
for r in 0 1; do
    ip -n $base-$r link add eth1 type veth peer name second$r netns $base-net &&
        ip -n $base-$r address add 10.97.0.$((r + 1))/24 dev eth1 &&
        ip -n $base-$r link set eth1 up &&
        ip -n $base-net link set second$r master bridge1 &&
        ip -n $base-net link set second$r up
done
before=$(sent 0 eth0)
DSCOMM_SOCKET_IFNAME=eth0,eth1 DSCOMM_BACKEND=tcp job 2 1 "$program" perf \
    -b 16M -e 16M -i 4 --no-pin all_reduce
finish
is "$statuses" '0,0' 'two networks side by side'
like "$(cat "$scratch/out.0")" 'Out of bounds values : 0 OK' 'the sums are right'
first=$(($(sent 0 eth0) - before))
for r in 0 1; do
    second=$(sent $r eth1)
    [ "$second" -gt $((first / 4)) ]
    result $? "host $r sends by both" || echo "# eth0 of host 0 $first, eth1 $second bytes"
done

# A slow link: long messages get a connection of their own.
if tc -n $base-0 qdisc add dev eth0 root tbf rate 400mbit burst 64k latency 50ms \
    2>"$scratch/why"; then
    DSCOMM_LOG=debug DSCOMM_BACKEND=tcp job 2 1 "$program" perf \
        -b 16M -e 16M -i 2 --no-pin all_reduce
    finish
    is "$statuses" '0,0' 'a slow link'
    like "$(cat "$scratch/out.0")" 'Out of bounds values : 0 OK' 'the sums are right'
    like "$(sed -n '/connection to rank 1 of the group is slow/,$p' "$scratch/err.0")" \
        'connects to rank 1 of the group at 10.98.0.2' \
        'the rank that sends by it makes another connection'
    # Rank 1 has a descriptor for the connection that it needs, and none for another one.
    limit=11 statuses=
    until [ "$statuses" = 0,0 ] || [ $limit = 24 ]; do
        limit=$((limit + 1))
        DSCOMM_BACKEND=tcp job 2 1 sh -c '[ "$RANK" = 0 ] || ulimit -n "$1"; shift; exec "$@"' \
            sh $limit "$program" perf -b 16M -e 16M -i 2 --no-pin all_reduce
        finish
    done
    is "$statuses" '0,0' 'no descriptor for another connection'
    like "$(cat "$scratch/err.1")" 'cannot accept one more connection for long messages: .*ulimit' \
        'a warning names the limit'
    tc -n $base-0 qdisc del dev eth0 root
else
    skip 'a slow link' "tbf: $(tail -n 1 "$scratch/why")"
fi

# Strangers on another host, who take all the room for connections that have proved nothing,
# while the ranks connect.
rm -f "$scratch"/pid.?
DSCOMM_BACKEND=tcp DSCOMM_TIMEOUT=7 job 2 1 sh -c 'echo $$ >"$0.$RANK"; exec "$@"' \
    "$scratch/pid" "$abs_top_builddir/tests/backends/net/rounds" 14 5
appears 2 "$scratch/pid.0" "$scratch/pid.1"
sleep 2
for r in 0 1; do
    on 2 python3 "$abs_top_srcdir/tests/backends/net/hostile.py" \
        "$(cat "$scratch/pid.$r")" 1 12 >"$scratch/crowd.$r" 2>&1 &
    eval "attacker$r=\$!"
done
finish
wait "$attacker0" "$attacker1"
is "$statuses" '0,0' 'strangers on another host keep no rank from connecting'
like "$(cat "$scratch/err.0")" 'closed a connection from 10\.98\.0\.3:[0-9]*: ' \
    'a warning names their host' || sed 's/^/# /' "$scratch"/crowd.?

# Interfaces.
DSCOMM_SOCKET_IFNAME=nosuch job 2 1 "$abs_top_builddir/tests/tools/failing" none
finish
like "$(cat "$scratch/err.0")" "DSCOMM_SOCKET_IFNAME='nosuch' chooses no interface" \
    'an interface that does not exist is refused'

rounds=$abs_top_builddir/tests/backends/net/rounds
NCCL_SOCKET_IFNAME=nosuch DSCOMM_BACKEND=tcp job 2 1 "$rounds" 1
finish
is "$statuses" '0,0' "one that does not exist in NCCL's variable is none"
like "$(cat "$scratch/err.0")" "NCCL_SOCKET_IFNAME='nosuch' chooses no interface" \
    'there is a warning'
DSCOMM_SOCKET_IFNAME=lo DSCOMM_TIMEOUT=3 job 2 1 "$rounds" 1
finish
like "$(cat "$scratch/err.0")" \
    'warn: tcp: .*no connection to 127.0.0.1.*leads to no other host.*again for [0-9]* s' \
    'an address that leads nowhere is told of before the deadline'

# As the bridges of container engines have it
for host in 0 1; do
    ip -n $base-$host link add same type veth peer name same1
    ip -n $base-$host address add 172.31.0.1/24 dev same
    ip -n $base-$host link set same up
    ip -n $base-$host link set same1 up
done
DSCOMM_SOCKET_IFNAME=same DSCOMM_TIMEOUT=3 job 2 1 "$rounds" 1
finish
like "$(cat "$scratch/err.0" "$scratch/err.1")" \
    'no connection to 172.31.0.1.*this host has that address, too.*set DSCOMM_SOCKET_IFNAME' \
    'an address that both hosts have is told of'
for host in 0 1; do
    ip -n $base-$host link del same
done

# What lacks, and who is late.
mkdir "$scratch/modules"
cp "$abs_top_builddir/backends/.libs/tcp.so" "$scratch/modules"
DSCOMM_BACKEND_PATH=$scratch/modules job 2 2 "$rounds" 1
finish
is "$statuses" '0,0' 'without module shm, tcp serves inside the hosts as well'
DSCOMM_BACKEND=tcp DSCOMM_TIMEOUT=5 job 2 1 "$rounds" 0 8
finish
like "$(cat "$scratch/err.0")" \
    'rank 1 .* .its host accepts connections to 10.9[78].0.2:[0-9]*, but its process' \
    'a rank that computes is not said to be unreachable'

# without COMMAND...: two ranks of one host meet in a file, after COMMAND has taken
# something from that host; $said = what rank 1 says
without()
{
    host=$base-lone
    ip netns add $host
    ip netns exec $host sh -c "$1"
    rm -f "$scratch/store"
    for r in 0 1; do
        start_node $r ip netns exec $host env RANK=$r WORLD_SIZE=2 DSCOMM_BACKEND=tcp \
            DSCOMM_TCP_UNIX=no DSCOMM_INIT_METHOD="file://$scratch/store" \
            "$abs_top_builddir/tests/backends/net/rounds" 1
    done
    finish
    ip netns del $host
    said=$(cat "$scratch/err.1")
}
without 'ip link set lo up'
is "$statuses" '0,0' 'a host that has nothing but its loopback'
without true
like "$said" 'rank [01] .*cannot listen on any address of this host: it has none; bring' \
    'a host without an interface'
without 'ip link set lo up; echo "50000 50000" >/proc/sys/net/ipv4/ip_local_port_range'
like "$said" 'rank [01] .*Address already in use; allow more local ports' \
    'a host without a free port'
tap_done
