#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers of a CUDA device on backend mpi, with a driver that is not one.

. "$abs_top_srcdir/tests/backends/mpi.sh"

program=$abs_top_builddir/tests/backends/device
case $SANITIZER_FLAGS in
*-fsanitize*) skip_all 'the stand-in for CUDA does not do with sanitizers' ;;
esac
cuda=$abs_top_builddir/tests/lib/device/.libs
[ -e "$cuda/libcuda.so.1" ] || skip_all 'the stand-in for CUDA is no shared library'
LD_LIBRARY_PATH=$cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
DSCOMM_MPI_BLOCKING=yes
DSCOMM_LOG=core:info
export LD_LIBRARY_PATH DSCOMM_MPI_BLOCKING DSCOMM_LOG

# How often the log tells of it; each rank should once
told()
{
    grep "group 'world': buffers of a device" "$scratch/err" | wc -l |
        sed 's/^0$//'
}

# devices BACKEND WHEN COPIES LOG TEXT [VARIABLE=VALUE...]: all of 2 ranks are
# content, and CUDA has copied so often, for a collective and for two messages
devices()
{
    backend=$1 when=$2 copies=$3 log=$4 text=$5
    shift 5
    # shellcheck disable=SC2086
    env DSCOMM_BACKEND="$backend" "$@" $launch -n 2 "$program" "$when" \
        >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    is "$status $(said "content $copies") $(said "copies $copies") $(told)" \
        "0 2 2 ${log:+2}" "$text" ||
        sed 's/^/# /' "$scratch/err"
    [ -z "$log" ] || like "$(cat "$scratch/err")" "$log" "$text: the log"
}

for library in openmpi mpich; do
    use_if_present $library || continue
    devices mpi never 0 '' 'no CUDA'
    devices mpi before 2 'staged.*not CUDA-aware' 'CUDA, then the world'
    devices mpi after 2 'staged.*not CUDA-aware' 'the world, then CUDA'
    devices mpi before 0 'go as they are' 'an MPI that takes them' \
        FAKE_CUDA_OPEN=1 FAKE_CUDA_AWARE=1 "LD_PRELOAD=$cuda/libcuda.so.1"
    devices mpi before 0 'go as they are' 'DSCOMM_CUDA_AWARE=yes' \
        FAKE_CUDA_OPEN=1 DSCOMM_CUDA_AWARE=yes
    devices mpi before 2 'staged.*DSCOMM_CUDA_AWARE is no' \
        'DSCOMM_CUDA_AWARE=no' FAKE_CUDA_OPEN=1 FAKE_CUDA_AWARE=1 \
        DSCOMM_CUDA_AWARE=no "LD_PRELOAD=$cuda/libcuda.so.1"
done
launch="$abs_top_builddir/tools/dscomm run"
devices shm never 0 '' 'shm: no CUDA'
devices shm before 2 'staged' 'shm: CUDA, then the world'
devices shm after 2 'staged' 'shm: the world, then CUDA'
devices shm before 2 'staged' 'shm: memory of no context' FAKE_CUDA_POOL=1
tap_done
