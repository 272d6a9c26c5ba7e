#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on hosts of their own, as far as launcher and library can tell, that nobody
# has told where rank 0 is: MPI does.

. "$abs_top_srcdir/tests/backends/mpi.sh"

DSCOMM_MPI_PATH=$abs_top_builddir/backends/mpi/.libs
hello=$abs_top_builddir/examples/hello/hello
apart=$scratch/apart
export DSCOMM_MPI_PATH

# LIKE mpirun: a host for each rank. LIKE arbitrary: so for srun, where rank 0 may be on
# any of them. LIKE step: where it is on the first. LIKE node: all on one host. Rank
# $absent never starts the program. Where $ending of them end, they wait for each other
# with that, since the launcher ends all with the first.
cat >"$apart" <<'SCRIPT'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
size=${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE}
case $like in
mpirun | arbitrary | step) DSCOMM_HOST_ID=$rank; export DSCOMM_HOST_ID ;;
esac
case $like in
mpirun)
    if [ "$OMPI_COMM_WORLD_SIZE" ]; then
        export OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1
    else
        export MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1
    fi ;;
arbitrary | step)
    unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_SIZE \
        OMPI_COMM_WORLD_LOCAL_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS
    export SLURM_JOB_ID="$number" SLURM_STEP_ID=0 SLURM_PROCID=$rank SLURM_LOCALID=0 \
        SLURM_NODEID=$rank SLURM_STEP_NUM_TASKS=$size SLURM_STEP_NUM_NODES=$size \
        "SLURM_STEP_TASKS_PER_NODE=1(x$size)" "SLURM_STEP_NODELIST=127.0.0.[1-$size]"
    [ "$like" = step ] || export SLURM_DISTRIBUTION=arbitrary ;;
esac
[ "${absent:-none}" != "$rank" ] || exec sleep 60
[ "$ending" ] || exec "$@"
"$@"
echo $? >"$scratch/ended.$rank"
for try in $(seq 300); do
    [ "$(find "$scratch" -name 'ended.*' | wc -l)" -lt "$ending" ] || break
    sleep 0.1
done
exit 1
SCRIPT
chmod +x "$apart"
number=$$
export like number scratch

# joined LIKE BACKEND N TEXT [OPTION...]: N ranks compute the right sum, and a
# backend has told them where to meet
joined()
{
    like=$1 backend=$2 n=$3 text=$4
    shift 4
    # shellcheck disable=SC2086
    DSCOMM_BACKEND=$backend DSCOMM_LOG=core:info DSCOMM_TIMEOUT=60 $launch -n "$n" \
        "$@" "$apart" "$hello" >"$scratch/out" 2>"$scratch/err" </dev/null
    [ $? = 0 ] && [ "$(said "of $n: the sum of all ranks is $((n * (n - 1) / 2))")" \
        -eq "$n" ] && grep -q 'has told the ranks where they meet' "$scratch/err"
    result $? "$text" || sed 's/^/# /' "$scratch/out" "$scratch/err"
}

# refused LIKE BACKEND PATTERN TEXT: both ranks end, and one of them says PATTERN
refused()
{
    like=$1
    ending=2
    export ending
    # shellcheck disable=SC2086
    DSCOMM_BACKEND=$2 $launch -n 2 "$apart" "$hello" >"$scratch/out" \
        2>"$scratch/err" </dev/null
    unset ending
    rm -f "$scratch"/ended.*
    like "$(cat "$scratch/err")" "$3" "$4"
}

# ended STATUS TEXT: so did the program on two ranks, after which the launcher ended all
ended()
{
    is "$(cat "$scratch"/ended.* | tr '\n' ' ')" "$1 $1 " "$2"
    rm -f "$scratch"/ended.*
}

# named LIKE BACKEND PATTERN TEXT: without rank 1 the other two say so
named()
{
    like=$1
    absent=1
    ending=2
    export absent ending
    # shellcheck disable=SC2086
    DSCOMM_BACKEND=$2 DSCOMM_TIMEOUT=5 $launch -n 3 "$apart" "$hello" \
        >"$scratch/out" 2>"$scratch/err" </dev/null
    unset absent ending
    [ "$(grep -o "$3" "$scratch/err" | wc -l)" -eq 2 ]
    result $? "$4" || sed 's/^/# /' "$scratch/err"
    ended 1 "$4: both end"
}

side_by_side()
{
    like=mpirun
    for job in 1 2; do
        # shellcheck disable=SC2086
        DSCOMM_BACKEND=mpi DSCOMM_TIMEOUT=60 $launch -n $((job + 1)) "$apart" \
            "$hello" >"$scratch/out.$job" 2>&1 </dev/null &
    done
    wait
    # Open MPI 5 remarks on each namespace that its loopback reaches no other, in
    # pieces that other ranks' may come between.
    is "$(cat "$scratch/out.1" "$scratch/out.2" |
        grep -o 'rank [0-9] of [0-9]: the sum of all ranks is [0-9]*' | sort | tr '\n' ';')" \
"rank 0 of 2: the sum of all ranks is 1;rank 0 of 3: the sum of all ranks is 3;\
rank 1 of 2: the sum of all ranks is 1;rank 1 of 3: the sum of all ranks is 3;\
rank 2 of 3: the sum of all ranks is 3;" "$1"
}

for library in openmpi mpich; do
    use_if_present $library || continue
    for backend in mpi two_level auto; do
        joined mpirun $backend 3 "$library: mpirun, backend $backend"
    done
    joined arbitrary mpi 3 "$library: srun's arbitrary distribution, backend mpi"
    joined arbitrary auto 2 "$library: srun's arbitrary distribution, backend auto"
    side_by_side "$library: two jobs side by side"
    named mpirun mpi 'MPI_Init_thread() has not come back within 5000 ms' \
        "$library: a rank that never comes, where MPI is to tell"
    named step mpi 'rank 1 of 3 did not come within 5.0 s' \
        "$library: and where a list of hosts does"
    MASTER_ADDR=127.0.0.1
    export MASTER_ADDR
    DSCOMM_MASTER_PORT=
    [ $library = openmpi ] || joined mpirun mpi 2 "$library: an address, but no port"
    unset MASTER_ADDR DSCOMM_MASTER_PORT

    program=$host
    host=$apart
    like=mpirun
    export program
    cat >"$scratch/hosted" <<'SCRIPT'
#!/bin/sh
exec "$apart" "$program" "$@"
SCRIPT
    chmod +x "$scratch/hosted"
    host=$scratch/hosted
    export apart
    content 3 single "$library: a program that has begun with MPI itself"
    content 3 none "$library: one that has not"
    DSCOMM_TIMEOUT=5
    ending=2
    export DSCOMM_TIMEOUT ending
    start 3 stay-away
    unset DSCOMM_TIMEOUT ending
    ended 4 "$library: a rank that uses MPI and never comes is named" ||
        sed 's/^/# /' "$scratch/err"
    MASTER_PORT=$((20000 + $$ % 10000))
    export MASTER_PORT
    content 3 twice "$library: two worlds at one port"
    unset MASTER_PORT

    NCCL_SOCKET_IFNAME=no-such-device
    export NCCL_SOCKET_IFNAME
    joined arbitrary auto 2 "$library: a choice of NCCL's that is not there"
    unset NCCL_SOCKET_IFNAME
    DSCOMM_SOCKET_IFNAME=no-such-device
    export DSCOMM_SOCKET_IFNAME
    refused arbitrary auto 'rank 0 cannot serve the store: DSCOMM_SOCKET_IFNAME' \
        "$library: all ranks refuse alike"
    refused mpirun mpi 'rank 0 cannot serve the store: DSCOMM_SOCKET_IFNAME' \
        "$library: all ranks learn that rank 0 cannot serve"
    unset DSCOMM_SOCKET_IFNAME
    DSCOMM_MPI_PATH=/nonexistent
    refused mpirun auto 'MASTER_ADDR' "$library: without a module it is MASTER_ADDR"
    refused mpirun shm 'MASTER_ADDR' "$library: nor can shm tell"
    like=node
    # shellcheck disable=SC2086
    DSCOMM_BACKEND=shm $launch -n 2 "$apart" "$hello" >"$scratch/out" 2>&1 </dev/null
    is "$(said 'the sum of all ranks is 1')" 2 "$library: shm on one host needs no MPI"
    DSCOMM_MPI_PATH=$abs_top_builddir/backends/mpi/.libs
    [ $library = openmpi ] ||
        joined none mpi 3 "$library: -pmi-port, which does not say how many" -pmi-port
done
tap_done
