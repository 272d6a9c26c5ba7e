#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The example digits with signs on backend mpi, under the mpirun of each MPI: on
# two ranks, where a sum has one order, the same to the last digit as on shm.

. "$abs_top_srcdir/tests/tap.sh"

digits=$abs_top_builddir/examples/digits/digits
data=$abs_top_srcdir/examples/digits/digits.csv.gz
[ -x "$digits" ] || skip_all 'digits was not built: no zlib'
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# It wants a remote shell to be there, though it will not use one.
OMPI_MCA_plm_rsh_agent=sh
UCX_LOG_LEVEL=error
DSCOMM_TIMEOUT=60
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM \
    OMPI_MCA_plm_rsh_agent UCX_LOG_LEVEL DSCOMM_TIMEOUT
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT

# start BACKEND N METHOD COMMAND...: digits, started by it; its status in $status
start()
{
    backend=$1 n=$2 method=$3
    shift 3
    env DSCOMM_BACKEND="$backend" timeout -k 5 100 "$@" -n "$n" "$digits" \
        --compress "$method" "$data" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    sed 's/^/# /' "$scratch/err"
}

# under MPI COMMAND...
under()
{
    mpi=$1
    shift
    if ! command -v "mpirun.$mpi" >/dev/null; then
        skip "digits under $mpi" "no mpirun.$mpi"
        return
    elif ! [ -e "$abs_top_builddir/backends/mpi/$mpi.la" ]; then
        skip "digits under $mpi" "no backend for $mpi"
        return
    fi
    for method in onebit onebit-lamb zero-one; do
        start shm 2 "$method" "$abs_top_builddir/tools/dscomm" run
        mv "$scratch/out" "$scratch/want"
        start mpi 2 "$method" "$@"
        is $status 0 "$mpi: $method"
        sed -n 's/^test accuracy/# &/p; s/^saved/# &/p' "$scratch/out"
        cmp "$scratch/out" "$scratch/want" >&2 &&
            grep -q '^saved: ' "$scratch/out"
        result $? "$mpi: $method learns and sends as on shm"
    done
    start mpi 4 onebit "$@"
    is $status 0 "$mpi: onebit on 4 ranks"
    accuracy=$(sed -n 's/^test accuracy: \([0-9.]*\) %$/\1/p' "$scratch/out")
    awk "BEGIN { exit !(\"$accuracy\" + 0 >= 95) }"
    result $? "$mpi: $accuracy % of the test is read, of 95 %"
}

under openmpi mpirun.openmpi --oversubscribe --bind-to none
under mpich mpirun.mpich -localhost localhost
tap_done
