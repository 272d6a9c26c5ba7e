#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm env: what it shows, and what it sets for other programs. The sources
# themselves are tested in tests/env.

. "$abs_top_srcdir/tests/tools/fixture.sh"

for name in RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT \
    SLURM_JOB_ID PBS_JOBID LSB_JOBID FLUX_JOB_ID PMIX_RANK DSCOMM_LAUNCHER; do
    unset $name
done

tool()
{
    dscomm env "$@"
}

# of NAME=VALUE... -- WHAT...: the same with variables
of()
{
    for word; do
        [ "$word" = -- ] && break
        # Names and values of the test's own
        export "${word?}"
    done
    while [ "$1" != -- ]; do shift; done
    shift
    tool "$@"
}

tool
is $status 0 'alone: status'
like "$out" '^rank 0 of 1, by singleton ' 'alone'
like "$out" '^  master port  unknown$' 'what is unknown'
is "$err" '' 'nothing to say'

ompi='OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1
    OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=7'
# Words on purpose
# shellcheck disable=SC2086
out=$(of $ompi -- && echo "$out")
like "$out" "^rank 1 of 2, by openmpi \(Open MPI's mpirun\)\$" 'a rank'
like "$out" '^  local size   2 +OMPI_COMM_WORLD_LOCAL_SIZE$' 'and where it is from'
like "$out" '^  master addr  127\.0\.0\.1 +one node$' 'what follows'
like "$out" '^  job          openmpi/7$' 'the job'

out=$(of SLURM_JOB_ID=7 -- --explain && echo "$out")
like "$out" '^  warning      inside Slurm job 7 but not started by srun' 'a warning'
like "$out" '^  slurm        absent   SLURM_STEP_ID not set$' 'what is not there'
like "$out" '^  singleton    taken    nothing else is there$' 'what is taken'
is "$(printf '%s\n' "$out" | sed -n '/^sources/,$p' | sed -n '2p;$p' |
    awk '{ print $1 }' | tr '\n' ' ')" 'dscomm singleton ' 'in their order'

(of RANK=0 -- --explain; echo "$status $err"; echo "$out") >"$scratch/out"
like "$(cat "$scratch/out")" "^1 dscomm env: RANK='0': WORLD_SIZE is missing" \
    'half a pair is refused'
like "$(cat "$scratch/out")" '^  pod          taken    RANK set$' 'and explained'
esc=$(printf 'a\033[1mb')
(of RANK="$esc" WORLD_SIZE=1 -- ; echo "$err") >"$scratch/out"
like "$(cat "$scratch/out")" "RANK='a \[1mb'" 'a value no terminal should get'

# JSON
# shellcheck disable=SC2086
(of $ompi -- --json && printf '%s\n' "$out") >"$scratch/json"
is "$(wc -l <"$scratch/json" | tr -d ' ')" 1 'JSON is a line'
like "$(cat "$scratch/json")" \
    '^\{"source":"openmpi","rank":1,"world_size":2,.*"master_addr":"127.0.0.1"' 'values'
like "$(cat "$scratch/json")" '"origins":\{"rank":"OMPI_COMM_WORLD_RANK",' 'origins'
like "$(cat "$scratch/json")" '"error":null,"no_master":null\}$' 'no errors'
(of RANK=x -- --json; echo "$status $out") >"$scratch/json"
like "$(cat "$scratch/json")" '^1 \{.*"rank":null,.*"error":"RANK=' \
    'an error in JSON'
tool --json --explain
like "$out" '"candidates":\[\{"name":"dscomm",.*"verdict":"taken","why":"nothing' \
    'candidates'

# For the shell
names='$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT'
# shellcheck disable=SC2086
got=$(export $ompi MASTER_PORT=5; eval "$("$program" env --export)"; eval "echo $names")
is "$got" '1 2 1 2 127.0.0.1 5' 'eval "$(dscomm env --export)"'
got=$(export DSCOMM_MASTER_ADDR="h';\$x"; eval "$("$program" env --export)"
    printf '%s\n' "$MASTER_ADDR")
is "$got" "h';\$x" 'a value that a shell must not read'
# shellcheck disable=SC2086
(of $ompi -- --exec sh -c "echo $names" && echo "$out") >"$scratch/out"
like "$(cat "$scratch/out")" '^1 2 1 2 127\.0\.0\.1 6[1-5][0-9]{3}$' '--exec'
tool --exec -- sh -c 'exit 7'
is $status 7 'status of a program'
(of SLURM_JOB_ID=7 -- --exec true; echo "$status $err") >"$scratch/out"
like "$(cat "$scratch/out")" '^0 dscomm env: inside Slurm job 7' 'a warning'
# shellcheck disable=SC2086
(of $ompi RANK=1 MASTER_ADDR=h -- --exec sh -c "echo $names" && echo "$out") \
    >"$scratch/out"
like "$(cat "$scratch/out")" '^1 2 1 2 h 6' 'what is set is kept'
# shellcheck disable=SC2086
(of $ompi DSCOMM_LAUNCHER=openmpi RANK=0 -- --exec true; echo "$status $err") \
    >"$scratch/out"
like "$(cat "$scratch/out")" "^1 dscomm env: env: RANK='0': set, but found to be '1'" \
    'what disagrees is refused'
(of OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 -- --export
    echo "$status $out $err") >"$scratch/out"
like "$(cat "$scratch/out")" '^1  dscomm env: MASTER_ADDR: not set' \
    'an address that is unknown'

# Wrong use
tool --exec "$scratch/nothing"
is $status 127 'a program that is not there'
: >"$scratch/file"
tool --exec "$scratch/file"
is $status 126 'a file that is none'
while read -r line; do
    # Words on purpose
    # shellcheck disable=SC2086
    tool $line
    is $status 2 "refused: $line"
done <<'END'
--exec
word
--json --export
--export --exec true
--explain --exec true
--nothing
END
if [ -c /dev/full ]; then
    "$program" env >/dev/full 2>"$scratch/err"
    is $? 1 'output that cannot be written'
else
    skip 'output that cannot be written' 'no /dev/full'
fi

# Placement. Where this process is bound already, it stays.
run2()
{
    status=0
    "$program" run -n 2 "$program" env --place "$@" >"$scratch/out" \
        2>"$scratch/err" || status=$?
}
if nproc --all | grep -qx "$(nproc)" && [ "$(nproc)" -ge 2 ]; then
    run2 --exec sh -c 'echo $RANK $(nproc) $OMP_NUM_THREADS'
    is "$status $(grep -c '^[01] [1-9][0-9]* [1-9]' "$scratch/out")" '0 2' \
        '--place --exec binds, and tells OpenMP'
    run2 --bind force:numa --exec sh -c 'grep Cpus_allowed_list: /proc/self/status'
    is "$(sort -u "$scratch/out" | wc -l)" 2 '--place: no two ranks share'
else
    skip '--place --exec' 'one processor, or bound already'
fi
run2 --json
is "$status $(grep -c '^{"bind":"numa","ranks":\[{"rank":[01],"local_rank":[01],"bind":.*,"why":".*","warning":null}\],"error":null}$' \
    "$scratch/out")" '0 2' '--place --json'
show='sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status'
all=$(sh -c "$show")
last=${all##*[-,]}
if command -v taskset >/dev/null && [ "$all" != "$last" ]; then
    out=$(taskset -c "$last" "$program" env --place)
    is "$out" "rank 0 of 1: left as it is
  bound to $last already, by the launcher" 'a mask of the launcher is kept'
    out=$(taskset -c "$last" "$program" env --place --bind force:numa)
    like "$out" "^rank 0 of 1: processors $last(, .*)?\$" 'force: takes a share of it'
    out=$(taskset -c "$last" "$program" env --place --bind "$all" 2>&1)
    like "$out" '  warning: the list has processors that may not be used' 'a list beyond it'
else
    skip 'a mask of the launcher' 'one processor, or no taskset (package util-linux)'
fi
# A container has some of the processors, but its ranks are not bound to them.
for parent in /sys/fs/cgroup/cpuset /sys/fs/cgroup; do
    cgroup=$parent/dscomm-test-$$
    mkdir "$cgroup" 2>"$scratch/err" || continue
    [ ! -e "$cgroup/cpuset.cpus" ] || break
    rmdir "$cgroup"
done
if [ "$all" != "$last" ] && [ -d "$cgroup" ]; then
    echo "$last" >"$cgroup/cpuset.cpus"
    [ ! -e "$parent/cpuset.mems" ] || cat "$parent/cpuset.mems" >"$cgroup/cpuset.mems"
    out=$(sh -c 'echo $$ >"$0/cgroup.procs" && exec "$1" env --place' "$cgroup" "$program")
    like "$out" "^rank 0 of 1: processors $last(, .*)?\$" 'the processors of a cgroup'
else
    skip 'the processors of a cgroup' 'one processor, or no cgroup can be made'
fi
[ ! -d "$cgroup" ] || rmdir "$cgroup"
# Other machines, by a file and by hwloc's variables
machine=$abs_top_srcdir/tests/env/machines/eight-gpus.xml
tool --place --bind gpu --input "$machine" --ranks-per-node 8
is "$status $(echo "$out" | grep -c '^local rank [0-7] of 8: processors ')" '0 8' \
    '--input: all ranks of a node'
# Two GPUs and two NICs are at one switch.
like "$out" '^local rank 5 of 8: processors 20-23,52-55, memory of NUMA node 2, NIC mlx5_5$' \
    '--input: a rank'
like "$(tool --place --bind core --input "$machine" --ranks-per-node 8; echo "$out")" \
    '^  [0-9]+ of the 32 cores of the machine, for 8 ranks$' '--input: a machine that is not this one'
tool --place --device 37:00.0 --input "$machine" --json
is "$out" '{"bind":"gpu","ranks":[{"rank":0,"local_rank":0,"bind":true,"processors":"8-15,40-47","cores":8,"numa_node":1,"device":"0000:37:00.0","nic":"mlx5_3","why":"8 of the 8 cores of NUMA node 1, near 0000:37:00.0, for 1 rank","warning":null}],"error":null}' \
    '--input --json'
(of DSCOMM_BIND=core -- --place --input "$machine" --ranks-per-node 2; echo "$out") >"$scratch/out"
like "$(cat "$scratch/out")" '^local rank 1 of 2: processors 1,33, ' 'DSCOMM_BIND is the default'
: >"$scratch/empty.xml"
echo 'Machine (62GB total)' >"$scratch/lstopo.txt"
echo '<system version="1"><cpu numaid="0"/></system>' >"$scratch/nccl.xml"
echo '<html/>' >"$scratch/page.xml"
head -c 2000 "$machine" >"$scratch/half.xml"
while IFS='|' read -r name want; do
    tool --place --input "$scratch/$name"
    like "$status $err" "^1 dscomm env: --input .*/$name: $want" "--input: $name"
done <<'END'
empty.xml|it is empty
none.xml|No such file or directory
.|it is no file, or cannot be read
lstopo.txt|it is no XML; lstopo writes it
nccl.xml|it is NCCL's XML, which dscomm topo reads; hwloc's is needed
page.xml|it is no XML that hwloc has exported
half.xml|it is incomplete, or no XML that hwloc has exported
END
tool --place --input "$scratch/empty.xml" --json
like "$out" '"error":"--input .*/empty.xml: it is empty"' '--input: the same in JSON'
like "$(of HWLOC_SYNTHETIC='NUMANode:2 Core:4 PU:2' HWLOC_THISSYSTEM=0 WORLD_SIZE=2 \
    RANK=1 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 -- --place && echo "$out$err")" \
    '^rank 1 of 2: processors 8-15, memory of NUMA node 1$' \
    '--place on another machine'
if unshare -m mount -t tmpfs none /sys 2>/dev/null; then
    out=$(RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 unshare -m sh -c \
        'mount -t tmpfs none /sys && "$0" env --place' "$program" 2>&1)
    is "$? $(printf '%s\n' "$out" | wc -l)" '0 2' '--place without /sys: no noise'
else
    skip '--place without /sys' 'cannot mount'
fi
while IFS='|' read -r words want; do
    # Words on purpose
    # shellcheck disable=SC2086
    tool --place $words
    like "$status $err" "^2 dscomm env: .*$want" "refused: $words"
done <<'END'
--device x|'x' is no PCI address
--device=|'' names no device
--bind=cpu|--bind 'cpu': give none, core, numa
--bind=3,2|--bind '3,2': a list of processors
--bind=core --device=1a:00.0|goes with --bind gpu only
--ranks-per-node=0|must be 1 to 4096
--ranks-per-node=2 --exec true|goes with neither --input nor
--explain|goes with neither --export nor --explain
END
tool --place --bind 3,2 --json
is "$status $out" "2 {\"error\":\"--bind '3,2': a list of processors has numbers below 65536 and \
ranges, ascending and without blanks, as 0-3,8,10-11\"}" 'refused, with JSON'
tool --place --input "$scratch/empty.xml" --json
like "$status $out" '^1 \{"bind":null,"ranks":\[\],"error":"--input .*"\}$' '--input, with JSON'
(of HWLOC_SYNTHETIC='NUMANode:1 Core:64 PU:2' HWLOC_THISSYSTEM=0 -- --place --exec sh -c "$show"
    echo "$status $out$err") >"$scratch/out"
is "$(cat "$scratch/out")" "0 $all" '--exec: not bound as on another machine'
(of DSCOMM_BIND=x -- --place; echo "$status $err") >"$scratch/out"
like "$(cat "$scratch/out")" "^2 dscomm env: DSCOMM_BIND 'x': give none" 'a malformed DSCOMM_BIND'
(of RANK=x WORLD_SIZE=2 -- --place --json; echo "$status $err$out") >"$scratch/out"
like "$(cat "$scratch/out")" \
    '^1 \{"bind":null,"ranks":\[\],"error":"RANK=.x.: .*"\}$' \
    '--place --json of an environment that makes no sense'
# torchrun --virtual-local-rank on the second of two nodes
virtual()
{
    of TORCHELASTIC_RUN_ID=x GROUP_RANK=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 \
        WORLD_SIZE=4 RANK=$1 -- --place --json && echo "$out"
}
like "$(virtual 3)" '"rank":3,"local_rank":1,.*"warning":"LOCAL_RANK is 0, but RANK says 1' \
    'a local rank that is not one'
like "$(virtual 2)" '"rank":2,"local_rank":0,.*"warning":null' 'and one that is'
# Nodes of 3, 2 and 3 ranks
uneven()
{
    of TORCHELASTIC_RUN_ID=x GROUP_RANK=1 GROUP_WORLD_SIZE=3 LOCAL_RANK=0 \
        LOCAL_WORLD_SIZE=2 WORLD_SIZE=8 RANK=3 -- --place --json && echo "$out"
}
like "$(uneven)" '"rank":3,"local_rank":0,.*"warning":null' 'of nodes that differ'
tool --device 1a:00.0
is "$status" 2 '--device without --place'

# Under launchers, all ranks into one pipe: N ranks, whole lines, one port
# under NAME COMMAND...
under()
{
    name=$1
    shift
    if ! command -v "$1" >"$scratch/which"; then
        skip "$name" "no $1"
        return
    fi
    # None is waited for for ever.
    set -- timeout -k 5 60 "$@"
    if ! "$@" true >"$scratch/log" 2>&1; then
        skip "$name" "$5 cannot start a program: $(head -n 1 "$scratch/log")"
        return
    fi
    "$@" "$program" env --exec sh -c "echo $names" 2>"$scratch/err" |
        sort >"$scratch/out"
    port=$(sed -n '1s/.* //p' "$scratch/out")
    for rank in 0 1 2; do
        echo "$rank 3 $rank 3 127.0.0.1 $port"
    done >"$scratch/want"
    same "$scratch/out" "$scratch/want" "$name: --exec"
    "$@" "$program" env --json 2>"$scratch/err" |
        grep -c '^{"source":"[a-z]*","rank":[0-2],.*}$' >"$scratch/out"
    is "$(cat "$scratch/out")" 3 "$name: --json"
    "$@" "$program" env --explain 2>"$scratch/err" |
        grep -c '^rank [0-2] of 3, by [a-z]* (.*)$' >"$scratch/out"
    is "$(cat "$scratch/out")" 3 "$name: --explain"
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# It wants a remote shell to be there, though it will not use one.
export OMPI_MCA_plm_rsh_agent=sh
under 'Open MPI' mpirun.openmpi --oversubscribe -n 3
under 'MPICH' mpirun.mpich -localhost localhost -n 3
under 'dscomm run' "$program" run -n 3

tap_done
