#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The example digits on backend mpi, under the mpirun of each MPI: on two ranks,
# where a sum has one order, the same to the last digit as on shm, with signs as
# well; on four by the same algorithm, and nearly so by MPI's own.

. "$abs_top_srcdir/tests/backends/mpi.sh"

digits=$abs_top_builddir/examples/digits/digits
data=$abs_top_srcdir/examples/digits/digits.csv.gz
[ -x "$digits" ] || skip_all 'digits was not built: no zlib'
DSCOMM_TIMEOUT=60
export DSCOMM_TIMEOUT

# start BACKEND N OPTIONS COMMAND...: digits, started by it; its status in $status
start()
{
    backend=$1 n=$2 options=$3
    shift 3
    # shellcheck disable=SC2086
    env DSCOMM_BACKEND="$backend" timeout -k 5 100 "$@" -n "$n" "$digits" \
        $options "$data" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    sed 's/^/# /' "$scratch/err"
}

# What digits computes: all that it prints but the backend and the time.
results()
{
    sed '/^[0-9]* ranks on backend /d; /^time: /d' "$1"
}

# same_results: as on shm, whose output was kept
same_results()
{
    results "$scratch/want" >"$scratch/on-shm"
    results "$scratch/out" | cmp - "$scratch/on-shm" >&2
}

# four COMMAND...: the losses of 4 ranks
four()
{
    start shm 4 '' "$abs_top_builddir/tools/dscomm" run
    sed -n 's/^epoch [0-9]*: loss //p' "$scratch/out" >"$scratch/want"
    start mpi 4 '' "$@"
    sed -n 's/^epoch [0-9]*: loss //p' "$scratch/out" >"$scratch/losses"
    paste "$scratch/want" "$scratch/losses" | awk '
        { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d }
        END { print "# largest difference", worst + 0, "of the loss"
              exit !(NR == 20 && worst <= 1e-5) }'
    result $? "$mpi: the losses of 4 ranks on shm"
    DSCOMM_ALGORITHM=all_reduce:ring
    export DSCOMM_ALGORITHM
    start shm 4 '' "$abs_top_builddir/tools/dscomm" run
    mv "$scratch/out" "$scratch/want"
    start mpi 4 '' "$@"
    unset DSCOMM_ALGORITHM
    same_results && grep -q '^epoch 20' "$scratch/out"
    result $? "$mpi: to the last digit, by the same algorithm"
}

# under MPI
under()
{
    mpi=$1
    if ! command -v "mpirun.$mpi" >/dev/null; then
        skip "digits under $mpi" "no mpirun.$mpi"
        return
    elif ! [ -e "$abs_top_builddir/backends/mpi/$mpi.la" ]; then
        skip "digits under $mpi" "no backend for $mpi"
        return
    fi
    use_"$mpi"
    # A launcher with arguments.
    # shellcheck disable=SC2086
    set -- $launch
    for method in onebit onebit-lamb zero-one; do
        start shm 2 "--compress $method" "$abs_top_builddir/tools/dscomm" run
        mv "$scratch/out" "$scratch/want"
        start mpi 2 "--compress $method" "$@"
        is $status 0 "$mpi: $method"
        sed -n 's/^test accuracy/# &/p; s/^saved/# &/p' "$scratch/out"
        same_results && grep -q '^saved: ' "$scratch/out"
        result $? "$mpi: $method learns and sends as on shm"
    done
    start mpi 4 "--compress onebit" "$@"
    is $status 0 "$mpi: onebit on 4 ranks"
    accuracy=$(sed -n 's/^test accuracy: \([0-9.]*\) %$/\1/p' "$scratch/out")
    awk "BEGIN { exit !(\"$accuracy\" + 0 >= 95) }"
    result $? "$mpi: $accuracy % of the test is read, of 95 %"
    four "$@"
}

under openmpi
under mpich
tap_done
