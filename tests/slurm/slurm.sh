#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A real Slurm of three nodes: srun over its wire-ups, sbatch, salloc, and the other
# launchers inside.

. "$abs_top_srcdir/tests/tap.sh"
. "$abs_top_srcdir/tests/slurm/cluster.sh"
. "$abs_top_srcdir/tests/launchers/ranks.sh"

# The nodes share one host name and one /dev/shm, which Open MPI would use
# between them.
OMPI_MCA_btl=self,tcp
export OMPI_MCA_btl
cluster_enter
cluster_start "$scratch/cluster" 3 || bail "no Slurm: $cluster_why"

for type in none pmi2 pmix; do
    if ! srun --mpi=list 2>&1 | grep -qw $type; then
        skip "srun --mpi=$type" "this Slurm has no $type"
        continue
    fi
    run srun --mpi=$type -N 3 -n 5 "$hello"
    ranks 5 "srun --mpi=$type"
done
run srun -n 1 "$hello"
ranks 1 'srun of one rank'

# Who may use the store. MUNGE keeps others out; a place that the user gives may be
# meant for PyTorch's processes, too.
# warned: how many lines say that everyone may
warned()
{
    printf '%s\n' "$err" | grep -c 'everyone who reaches 10\.99\.1\.1:'
}
run srun -N 2 -n 4 "$hello"
is "$status $(warned)" '0 0' 'a step without a secret gets one by MUNGE'
run env MASTER_ADDR=n0 MASTER_PORT=29500 srun -N 2 -n 4 "$hello"
is "$status $(warned)" '0 1' 'a step at a place of the user: a warning'
run env MASTER_ADDR=n0 MASTER_PORT=29500 sh -c '
    export DSCOMM_JOB_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d " \n")
    srun -N 2 -n 4 "$1"' sh "$hello"
is "$status $(warned)" '0 0' 'a step at a place of the user, with a secret'
# The other user gives up first: srun kills the steps that are left.
run env DSCOMM_TIMEOUT=8 srun -N 2 -n 4 sh -c '[ $SLURM_PROCID != 3 ] ||
        exec env DSCOMM_TIMEOUT=4 setpriv --reuid 65534 \
            --inh-caps +dac_read_search --ambient-caps +dac_read_search "$1"
    exec "$1"' sh "$hello"
[ "$status" != 0 ]
result $? 'a process of another user in the step: the job does not start'
like "$err" 'munge: Unauthorized credential' 'the other user gets no secret'

# Without a wire-up every process is an MPI world of its own.
host=$abs_top_builddir/tests/backends/mpi-host-mpich
if [ -x "$host" ]; then
    for mode in complain lost; do
        run env DSCOMM_BACKEND=mpi DSCOMM_MPI_LIBRARY=mpich \
            DSCOMM_MPI_PATH="$abs_top_builddir/backends/mpi/.libs" \
            srun --mpi=none -N 2 -n 4 "$host" $mode
        [ "$status" != 0 ]
        result $? "T28 MPI without a wire-up, $mode: status $status"
        like "$err" 'MPI was not wired up: .*srun --mpi=pmi2' \
            "T28 MPI without a wire-up, $mode"
    done
else
    skip 'T28 MPI without a wire-up' 'configure has found no MPICH'
fi
run srun -N 3 -n 6 -m cyclic "$hello"
ranks 6 'srun -m cyclic'
run salloc -N 3 srun -N 2 -n 4 -r 1 "$hello"
ranks 4 'srun -r: nodes that begin in the middle of the job'
run srun -N 2 -n 4 "$digits" "$data"
is "$status $(grep -c '^epoch [0-9]*: loss ' "$scratch/out")" '0 20' 'digits'

run srun -N 2 -n 4 "$dscomm" env --json
told 4 slurm 'dscomm env'
run srun -N 3 -n 5 "$dscomm" env --explain
is "$(grep -c '^rank [0-4] of 5, by slurm' "$scratch/out") $(grep -c '^  slurm  *taken' "$scratch/out")" \
    '5 5' 'dscomm env --explain'
run srun -w n0,n1 -n 3 "$dscomm" env --exec sh -c 'echo $RANK $WORLD_SIZE $MASTER_ADDR'
is "$(sort "$scratch/out" | tr '\n' ,)" '0 3 n0,1 3 n0,2 3 n0,' 'dscomm env --exec'

printf 'n2\nn0\nn2\n' >"$scratch/hosts"
run env SLURM_HOSTFILE="$scratch/hosts" srun -m arbitrary -n 3 "$hello"
is "$status" 1 'srun -m arbitrary: rank 0 may be anywhere'
like "$err" 'MASTER_ADDR.* \(source: slurm\)' 'srun -m arbitrary: what to do'
run env SLURM_HOSTFILE="$scratch/hosts" MASTER_ADDR=n2 \
    srun -m arbitrary -n 3 "$hello"
ranks 3 'srun -m arbitrary, with an address'

# Two steps at a time have ports of their own.
run salloc -N 3 sh -c 'srun --overlap -N 3 -n 3 "$1" & srun --overlap -N 3 -n 3 "$1"; wait' \
    sh "$hello"
sort "$scratch/out" | uniq -c | awk '{ print $1 }' >"$scratch/twice"
is "$status $(tr '\n' ' ' <"$scratch/twice")" '0 2 2 2 ' 'two steps at once'

# Scripts
# batch COMMAND: in a batch job of three nodes with two tasks each; sbatch -W would
# look at it too rarely
batch()
{
    rm -f "$scratch/done"
    printf '#!/bin/sh\n%s\necho $? >%s\n' "$1" "$scratch/done" >"$scratch/job"
    run sbatch -N 3 -n 6 -o "$scratch/job.out" -e "$scratch/job.err" \
        "$scratch/job"
    tries=0
    until [ -s "$scratch/done" ] || [ $tries -ge 600 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    status=$(cat "$scratch/done")
    cat "$scratch/job.out" >"$scratch/out"
    err=$(cat "$scratch/job.err")
}

batch "srun $hello"
ranks 6 'srun in a batch script'
batch "$hello"
ranks 1 'a program in a batch script, without srun'
like "$err" 'inside Slurm job [0-9]+ but not started by srun' \
    'a program in a batch script: a warning'
run salloc -N 3 -n 6 srun "$hello"
ranks 6 'srun in salloc'
run salloc -N 3 -n 6 "$hello"
ranks 1 'a program in salloc, without srun'
batch "srun -N 3 -n 3 sh -c 'exec $abs_top_builddir/tools/dscomm run \
    --nnodes \$SLURM_STEP_NUM_NODES --node-rank \$SLURM_NODEID \
    --rdzv-id \$SLURM_JOB_ID.\$SLURM_STEP_ID -n 2 \
    --master \$(scontrol show hostnames \$SLURM_STEP_NODELIST | head -n 1) $hello'"
ranks 6 'dscomm run in srun'

# torchrun, one a node
python=${TEST_PYTHON:-python3}
no_torch=${NO_TORCH:-"$python has no torch.distributed; set DSCOMM_TEST_PYTHON"}
if "$python" -c 'import torch.distributed.run' >/dev/null 2>&1; then
    run srun -N 2 -n 2 sh -c 'exec "$1" -m torch.distributed.run --no-python \
        --nnodes 2 --node-rank $SLURM_NODEID --master-addr n0 \
        --nproc-per-node 2 "$2"' sh "$python" "$hello"
    ranks 4 'torchrun in srun'
else
    skip 'torchrun in srun' "$no_torch"
fi

# MPI's launchers in a job: there rank 0 may be on any node.
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
# It wants a remote shell to be there, though it will not use one.
OMPI_MCA_plm_rsh_agent=sh
export OMPI_MCA_plm_rsh_agent
for mpirun in mpirun.openmpi mpirun.mpich; do
    if ! command -v $mpirun >/dev/null; then
        skip "$mpirun in Slurm" "no $mpirun"
        continue
    fi
    run salloc -N 3 -n 6 env MASTER_ADDR=n0 MASTER_PORT=29500 $mpirun -n 5 "$hello"
    ranks 5 "$mpirun in salloc"
    run salloc -N 3 -n 6 env DSCOMM_BACKEND=shm $mpirun -n 5 "$hello"
    [ "$status" != 0 ]
    result $? "$mpirun in salloc without an address: status $status"
    like "$err" 'MASTER_ADDR.*not set' "$mpirun in salloc without an address"
    # Nodes that are one machine would take each other's shared memory.
    if [ -e "$abs_top_builddir/backends/mpi/.libs/${mpirun#mpirun.}.so" ]; then
        run salloc -N 3 -n 6 env \
            DSCOMM_MPI_PATH="$abs_top_builddir/backends/mpi/.libs" \
            $mpirun -n 5 "$hello"
        ranks 5 "$mpirun in salloc, where MPI tells the address"
    else
        skip "$mpirun in salloc, where MPI tells the address" 'no module for it'
    fi
    # The line that dscomm env --mpirun prints starts such a job as it is.
    run salloc -N 2 -n 4 sh -c 'eval "$("$1" env --mpirun --ranks-per-node 2 \
        --mpirun-path "$2" -- "$3" | sed -n 2p)"' sh \
        "$abs_top_builddir/tools/dscomm" $mpirun "$hello"
    ranks 4 "$mpirun in salloc as dscomm env --mpirun says"
    # Each has a name of its own, from which the port follows; and a folder, since Open
    # MPI's end where both make the one for all at the same time.
    mkdir -p "$scratch/a" "$scratch/b"
    run salloc -N 3 -n 6 env MASTER_ADDR=n0 sh -c 'TMPDIR=$3/a "$1" -n 3 "$2" &
        TMPDIR=$3/b "$1" -n 3 "$2"; wait' sh $mpirun "$hello" "$scratch"
    sort "$scratch/out" | uniq -c | awk '{ print $1 }' >"$scratch/twice"
    is "$status $(tr '\n' ' ' <"$scratch/twice")" '0 2 2 2 ' "two $mpirun at once" ||
        echo "# $err"
    batch "MASTER_ADDR=n0 MASTER_PORT=29500 $mpirun -n 6 $hello"
    ranks 6 "$mpirun in a batch script"
    # srun there may start more than the one rank that the launcher has
    run $mpirun -n 1 srun --overlap -n 2 "$dscomm" env
    like "$(cat "$scratch/out")" 'one rank, by .*set DSCOMM_LAUNCHER=slurm' \
        "srun below $mpirun of one rank"
done

# Launchers in a step that speaks PMI-2, whose variables they pass on
# names WHAT: how many names jobs have, of as many ranks as there should be
names()
{
    is "$(sed -n 's/.*"source":"hydra".*"job":"\([^"]*\)".*/\1/p' "$scratch/out" |
        sort | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" '2 2 ' "$1" ||
        echo "# $err"
}

if ! srun --mpi=list 2>&1 | grep -qw pmi2; then
    skip 'launchers in a step with PMI-2' 'this Slurm has no pmi2'
else
    if command -v mpirun.mpich >/dev/null; then
        run srun --mpi=pmi2 -N 1 -n 1 sh -c 'for i in 1 2; do
            mpirun.mpich -launcher fork -hosts localhost -n 2 "$1" env --json &
            done; wait' sh "$dscomm"
        names 'two mpirun.mpich in a task: two jobs'
        run srun --mpi=pmi2 -N 1 -n 2 mpirun.mpich -launcher fork \
            -hosts localhost -n 2 "$dscomm" env --json
        names 'mpirun.mpich in each of two tasks: two jobs'
        run salloc -w n0,n1 -n 2 srun --mpi=pmi2 -N 2 -n 2 --overlap \
            env MASTER_ADDR=n0 mpirun.mpich -n 2 -ppn 1 -hosts n0,n1 \
            "$dscomm" env --json
        is "$(grep -c '"no_master":"MASTER_PORT: not set' "$scratch/out")" 4 \
            'mpirun.mpich on several nodes in each of two tasks: no port' ||
            echo "# $err"
    else
        skip 'mpirun.mpich in a step with PMI-2' 'no mpirun.mpich'
    fi
    if command -v mpirun.openmpi >/dev/null; then
        run salloc -N 2 -n 4 srun --mpi=pmi2 -N 1 -n 1 --overlap mpirun.openmpi \
            --oversubscribe -n 4 -x MASTER_ADDR=n0 "$hello"
        ranks 4 'mpirun.openmpi in a step with PMI-2, over several nodes'
    else
        skip 'mpirun.openmpi in a step with PMI-2' 'no mpirun.openmpi'
    fi
fi

tap_done
