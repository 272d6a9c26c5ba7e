#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm run on two and four hosts: network namespaces with a name and loopback of
# their own, joined by a bridge in one more. Nothing of it is in the namespace of
# this test, nor is there a way from one to the other.

. "$abs_top_srcdir/tests/tools/jobs.sh"

base=dscomm-$$
hosts=0

# Ends what was started here, and then the hosts.
teardown()
{
    kill_started
    while [ $hosts -gt 0 ]; do
        hosts=$((hosts - 1))
        ip netns del $base-$hosts 2>/dev/null
    done
    ip netns del $base-net 2>/dev/null
}

[ "$(id -u)" = 0 ] || skip_all 'network namespaces need root'
command -v ip >/dev/null || skip_all 'no ip (package iproute2)'
command -v unshare >/dev/null || skip_all 'no unshare (package util-linux)'
trap 'teardown; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
ip netns add $base-net 2>"$scratch/why" ||
    skip_all "no network namespaces: $(tail -n 1 "$scratch/why")"
ip -n $base-net link set lo up &&
    ip -n $base-net link add bridge type bridge 2>"$scratch/why" &&
    ip -n $base-net link set bridge up ||
    skip_all "no bridges: $(tail -n 1 "$scratch/why")"

# add_host: the next one
add_host()
{
    ip netns add $base-$hosts &&
        ip -n $base-$hosts link set lo up &&
        ip -n $base-$hosts link add eth0 type veth \
            peer name port$hosts netns $base-net &&
        ip -n $base-$hosts address add 10.99.0.$((hosts + 1))/24 dev eth0 &&
        ip -n $base-$hosts link set eth0 up &&
        ip -n $base-net link set port$hosts master bridge &&
        ip -n $base-net link set port$hosts up
    status=$?
    hosts=$((hosts + 1))
    return $status
}

# on R COMMAND...: becomes COMMAND on host R, whose name is hostR. ip netns exec would
# not do in a chroot.
on()
{
    r=$1
    shift
    exec nsenter --net=/run/netns/$base-"$r" unshare -u sh -c \
        'uname=$1; shift; hostname $uname && exec "$@"' sh host"$r" "$@"
}

# node R ARGUMENT...: starts dscomm run as node R, on host R
node()
{
    r=$1
    shift
    # Split on purpose: one word an option.
    # shellcheck disable=SC2086
    start_node "$r" on "$r" "$program" run --nnodes "$nodes" --node-rank "$r" \
        $bounds "$@"
}

# all ARGUMENT...: as $nodes nodes, each of 2 ranks; in $statuses node 0's first
all()
{
    rm -f "$scratch"/out.* "$scratch"/err.*
    r=0
    while [ $r -lt $nodes ]; do
        node $r -n 2 "$@"
        r=$((r + 1))
    done
}

# up: all nodes, whose ranks stay
up()
{
    rm -f "$scratch"/up.*
    all sh -c 'echo $$ >"$1/up.$RANK"; exec sleep 600' sh "$scratch"
    appears $((2 * nodes)) "$scratch"/up.*
}

# since SECONDS TEXT: no more than that have passed since $before
since()
{
    passed=$(($(date +%s) - before))
    [ $passed -le "$1" ]
    result $? "$2: within $1 s" || echo "# $passed s"
}

usual='--master 10.99.0.1 --join-timeout 30 --node-timeout 4 --grace 2'
bounds=$usual
keys=$abs_top_builddir/tests/launchers/keys
add_host 2>"$scratch/why" && add_host 2>>"$scratch/why" ||
    skip_all "no links between namespaces: $(tail -n 1 "$scratch/why")"
(on 1 true) 2>"$scratch/why" ||
    skip_all "no programs in namespaces: $(tail -n 1 "$scratch/why")"

# Two hosts
nodes=2
node 1 -n 1 "$keys"
node 0 -n 3 "$keys"
ends 0,0 'two hosts: statuses'
is "$(sort "$scratch/out")" 'rank 0 of 4 on node 0: 6
rank 1 of 4 on node 0: 6
rank 2 of 4 on node 0: 6
rank 3 of 4 on node 1: 6' 'two hosts: all ranks exchange their numbers'
is "$(cat "$scratch"/err.[01])" "dscomm: warn: store: everyone who reaches \
10.99.0.1:29500 may use the job's store, since the job has no secret: set \
DSCOMM_JOB_SECRET or DSCOMM_JOB_SECRET_FILE, or trust that network (see \
dscomm-security(7))" 'two hosts without a secret: a warning'

# From now on the nodes have one, each in its own way.
DSCOMM_JOB_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
(umask 077 && echo "$DSCOMM_JOB_SECRET" >"$scratch/secret")
(
    unset DSCOMM_JOB_SECRET
    DSCOMM_JOB_SECRET_FILE=$scratch/secret
    export DSCOMM_JOB_SECRET_FILE
    node 1 -n 1 "$keys"
    wait "$pid_1"
) &
from_file=$!
export DSCOMM_JOB_SECRET
node 0 -n 3 "$keys"
wait $from_file
is $? 0 'two hosts with a secret: the status of one that has it in a file'
finish
is "$statuses $(grep -c 'of 4 on node [01]: 6$' "$scratch/out") $(cat "$scratch"/err.[01])" \
    '0 4 ' 'two hosts with a secret: all ranks exchange their numbers'
all --max-restarts 1 sh -c '[ $RANK$TORCHELASTIC_RESTART_COUNT != 30 ] ||
    kill -KILL $$; exec "$1"' sh "$keys"
finish
is "$statuses $(grep -c 'of 4 on node [01]: 6$' "$scratch/out")" '0,0 4' \
    'two hosts: started again'
is "$(err 0)" 'dscomm run: node 1 (host1): rank 3 (pid) was killed by signal 9 (Killed); ending ranks 0-1; starting all again (restart 1 of 1)' \
    'two hosts: why'
DSCOMM_TIMEOUT=20 all --tag-output "$abs_top_builddir/examples/hello/hello"
finish
is "$statuses $(grep -c 'of 4: the sum of all ranks is 6' "$scratch/out")" '0,0 4' \
    'ranks of two hosts compute a sum'
DSCOMM_BACKEND=shm DSCOMM_TIMEOUT=20 all --tag-output "$abs_top_builddir/examples/hello/hello"
finish
[ "${statuses%,*}" = "${statuses#*,}" ] && [ "${statuses%,*}" != 0 ]
result $? "shm does not reach over hosts: statuses $statuses"
for r in 0 1; do
    like "$(err $r)" 'backend shm cannot serve this world of 4 ranks: the ranks do not all run on one host' \
        "shm does not reach over hosts: node $r says so"
done
up
kill -KILL "$pid_1"
before=$(date +%s)
ends 125,137 'a host dies: statuses'
is "$(err 0)" 'dscomm run: node 1 (host1): dscomm run (pid) was killed; ending ranks 0-1' \
    'a host dies: the other'
since 10 'a host dies'
gone "$scratch"/up.*
result $? 'a host dies: no rank is left'

# Another host's secret differs. The kernel does not know whose process that is, so
# that it ends nothing, but node 0 names it when its time is over.
secret=$DSCOMM_JOB_SECRET
bounds="$usual --join-timeout 3"
node 0 -n 1 true
DSCOMM_JOB_SECRET=0123456789abcdef
node 1 -n 1 true
finish
DSCOMM_JOB_SECRET=$secret
is "$statuses" 125,125 'another secret on another host: statuses'
like "$(err 0)" 'dscomm run: node 1 of 2 did not come to .* within 3 s; 1 connection was refused at node 0.s store, from 10\.99\.0\.2:[0-9]+, which says that it is dscomm run --nnodes 2 --max-restarts 0 \(pid [0-9]+ on host1\): it has another job secret than node 0, or none; give all processes of the job the same DSCOMM_JOB_SECRET' \
    'another secret on another host: node 0'
like "$(err 1)" '^dscomm run: node 0 of 2 did not come: the store at .* has another secret' \
    'another secret on another host: node 1'
bounds=$usual

# Addresses, without the secret, with which node 0 would listen at all that it has
secret=$DSCOMM_JOB_SECRET
unset DSCOMM_JOB_SECRET
bounds='--master localhost --join-timeout 2'
all true
ends 125,125 'a master on loopback: statuses'
like "$(err 0)" '^dscomm run: node 1 of 2 did not come to .+:[0-9]+ within 2 s; the address of --master is loopback here' \
    'a master on loopback: node 0'
like "$(err 1)" '^dscomm run: node 0 of 2 did not come: no store within' \
    'a master on loopback: node 1'

# Names of /etc/hosts: Debian gives the machine's own to 127.0.1.1. A name may be an
# alias, in any case, and has the address of its first entry.
cat >"$scratch/hosts" <<'END'
127.0.0.1	localhost
127.0.1.1  own.test	host0 # own
10.99.0.1 far.test both
127.0.0.1 both
10.99.0.1 last
END
cat >"$scratch/names" <<'END'
host0 is loopback here
own.test is loopback here
OWN.Test is loopback here
far.test check that
both check that
LAST check that
END

# with_hosts R COMMAND...: like on; /etc/hosts is the file above
with_hosts()
{
    r=$1
    shift
    on "$r" unshare -m sh -c 'mount --bind "$1" /etc/hosts && shift && exec "$@"' \
        sh "$scratch/hosts" "$@"
}

if (with_hosts 0 true) 2>"$scratch/why"; then
    r=0
    while read -r name text; do
        start_node $r with_hosts 0 "$program" run --nnodes 2 --node-rank 0 -n 1 \
            --master "$name:$((29500 + r))" --join-timeout 2 true
        r=$((r + 1))
    done <"$scratch/names"
    finish
    r=0
    while read -r name text; do
        like "$(err $r)" "^dscomm run: node 1 of 2 did not come to .*$text" \
            "/etc/hosts: $name: $text"
        r=$((r + 1))
    done <"$scratch/names"
else
    skip 'names of /etc/hosts' "$(tail -n 1 "$scratch/why")"
fi
bounds='--master 10.99.0.77 --join-timeout 10 --node-timeout 2'
node 0 -n 1 sleep 600
ends 125 'a master that is no address of node 0: status'
like "$(err 0)" '^dscomm run: node 0 cannot serve .* 10\.99\.0\.77: that leads to no address of this machine .*--master' \
    'a master that is no address of node 0: why'
bounds=$usual
DSCOMM_JOB_SECRET=$secret
export DSCOMM_JOB_SECRET

# Four hosts
add_host && add_host
nodes=4
all "$keys"
ends 0,0,0,0 'four hosts: statuses'
is "$(grep -c 'of 8 on node [0-3]: 28$' "$scratch/out")" 8 \
    'four hosts: all ranks exchange their numbers'
all sh -c '[ $RANK != 5 ] || exit 9; exec sleep 600'
ends 9,9,9,9 'a rank fails: statuses'
for r in 0 1 3; do
    is "$(err $r)" "dscomm run: node 2 (host2): rank 5 (pid) exited with status 9; ending ranks $((2 * r))-$((2 * r + 1))" \
        "a rank fails: node $r"
done
up
ip -n $base-net link set port2 down
before=$(date +%s)
ends 125,125,125,125 'a cable is cut: statuses'
for r in 0 1 3; do
    like "$(err $r)" "^dscomm run: node 2 \\(host2\\): nothing was heard of it for 4 s: .*; ending ranks $((2 * r))-$((2 * r + 1))\$" \
        "a cable is cut: node $r"
done
like "$(err 2)" '^dscomm run: node 0 \(host0\): .*10\.99\.0\.1.*; ending ranks 4-5$' \
    'a cable is cut: node 2'
since 15 'a cable is cut'
gone "$scratch"/up.*
result $? 'a cable is cut: no rank is left'
ip -n $base-net link set port2 up
up
ip -n $base-net link set port0 down
before=$(date +%s)
ends 125,125,125,125 'the cable of node 0 is cut: statuses'
for r in 1 2 3; do
    like "$(err $r)" "^dscomm run: node 0 \\(host0\\): .*10\\.99\\.0\\.1.*; ending ranks $((2 * r))-$((2 * r + 1))\$" \
        "the cable of node 0 is cut: node $r"
done
since 15 'the cable of node 0 is cut'
gone "$scratch"/up.*
result $? 'the cable of node 0 is cut: no rank is left'
ip -n $base-net link set port0 up
bounds='--master 10.99.0.1 --join-timeout 4'
before=$(date +%s)
for r in 0 1 2; do
    node $r -n 2 "$keys"
done
ends 125,125,125 'a host never comes: statuses'
for r in 0 1 2; do
    like "$(err $r)" '^dscomm run: node 3 of 4 did not come to .+:[0-9]+ within 4 s; check that' \
        "a host never comes: node $r names it"
done
since 12 'a host never comes'

tap_done
