#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers of a device, compressed there, on ranks of backend mpi: rows go to and from
# its memory as they are where MPI takes that, else others read them there, or they go by
# way of the host. Driver, device and module are stand-ins; the ranks, MPI and its
# messages are not.

. "$abs_top_srcdir/tests/backends/mpi.sh"

program=$abs_top_builddir/tests/compression/.libs/staged
libraries=$abs_top_builddir/compression/.libs
case $SANITIZER_FLAGS in
*-fsanitize*) skip_all 'the stand-in for CUDA does not do with sanitizers' ;;
esac
[ -x "$program" ] && [ -e "$libraries/libdscomm-compression.so.0" ] ||
    skip_all 'the libraries are not shared ones'
cuda=$abs_top_builddir/tests/lib/device/.libs
[ -e "$cuda/libcuda.so.1" ] || skip_all 'the stand-in for CUDA is no shared library'
# A library looks for its module beside itself, in a folder of its version.
folder=$scratch/$(basename "$compressionmoduledir")
mkdir "$folder" &&
    ln -s "$libraries/libdscomm-compression.so.0" "$scratch" &&
    ln -s "$abs_top_builddir/tests/compression/.libs/fake-module.so" \
        "$folder/cuda.so" || exit 1
LD_LIBRARY_PATH=$cuda:$scratch:$abs_top_builddir/lib/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
FAKE_CUDA_OPEN=1
DSCOMM_BACKEND=mpi
DSCOMM_LOG=compression:info
export LD_LIBRARY_PATH FAKE_CUDA_OPEN DSCOMM_BACKEND DSCOMM_LOG

# told TEXT: how many ranks' logs tell of it
told()
{
    grep -o "$1" "$scratch/err" | wc -l
}

# compress N AWARE TEXT WAY [SETTING]: on N ranks, whose rows go that way
compress()
{
    # shellcheck disable=SC2086
    DSCOMM_CUDA_AWARE=$2 $launch -n "$1" env $5 "$program" 5000 100000 \
        >"$scratch/out" 2>"$scratch/err" </dev/null
    is "$? $(said content)" "0 $((2 * $1))" \
        "$library, $1 ranks, $3: results are those of host memory" ||
        sed 's/^/# /' "$scratch/err"
    is "$(told 'of a device are compressed there') $(told "$4")" "$1 $1" \
        "$library, $1 ranks, $3: the way is told" || sed 's/^/# /' "$scratch/err"
}

for library in openmpi mpich; do
    if [ ! -e "$DSCOMM_MPI_PATH/$library.so" ] ||
        ! command -v "mpirun.$library" >/dev/null; then
        skip "mpirun.$library" 'it is not there, or there is no module for it'
        continue
    fi
    use_$library
    for n in 2 3; do
        compress $n yes 'as they are' 'of a device go as they are to backend mpi'
    done
    for n in 2 3; do
        compress $n no 'through windows' 'of a device are read there by the other'
    done
    compress 2 no 'by the host' 'of a device go by host memory, since' \
        DSCOMM_CUDA_IPC=no
done
tap_done
