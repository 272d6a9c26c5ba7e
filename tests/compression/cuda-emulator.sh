#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The kernels for CUDA devices without one, and faults put into them, each of which
# must be found.

. "$abs_top_srcdir/tests/tap.sh"

[ -n "$CXX" ] || skip_all 'no C++ compiler'
folder=$abs_top_srcdir/compression
kernels=$folder/cuda/kernels.cu

cat >"$scratch/row.c" <<'END'
#include "compression/codecs/kernels.h"

const dscomm_codec_kernels_t *dscomm_priv_codec_kernels(void)
{
    return &dscomm_priv_codec_kernels_c;
}
END
includes="-I$abs_top_builddir -I$abs_top_srcdir -I$abs_top_srcdir/lib -I$folder"
# Words are options; compilers may be commands with arguments.
# shellcheck disable=SC2086
(cd "$scratch" && $CC -O1 -std=gnu11 -ffp-contract=off $includes -c \
    "$folder/codecs/kernels-c.c" "$folder/codecs/onebit.c" "$folder/codecs/common.c" \
    row.c) >"$scratch/log" 2>&1
result $? 'the codec of hosts is compiled' || sed 's/^/# /' "$scratch/log"

# make_with KERNELS PROGRAM
make_with()
{
    # shellcheck disable=SC2086
    $CXX -std=c++17 -O1 -ffp-contract=off -w $includes \
        -DCUDA_EMULATOR='"tests/compression/cuda-emulator.h"' \
        -DKERNELS="\"$1\"" "$abs_top_srcdir/tests/compression/cuda-emulator.cpp" \
        "$scratch/kernels-c.o" "$scratch/onebit.o" "$scratch/common.o" \
        "$scratch/row.o" -lm -o "$2" >"$scratch/log" 2>&1
}

make_with "$kernels" "$scratch/kernels"
result $? 'the kernels are compiled' || sed 's/^/# /' "$scratch/log"
"$scratch/kernels" >"$scratch/out" 2>&1
result $? "the kernels: $(grep -c '^ok' "$scratch/out") checks" ||
    grep -v '^ok' "$scratch/out" | sed 's/^/# /'

# fault TEXT COMMAND: what sed makes of the kernels is found to be wrong
fault()
{
    sed "$2" "$kernels" >"$scratch/fault.cu"
    if cmp -s "$kernels" "$scratch/fault.cu"; then
        result 1 "$1: there is no such place any more"
        return
    fi
    make_with "$scratch/fault.cu" "$scratch/fault" || {
        result 1 "$1: it is not compiled"
        sed 's/^/# /' "$scratch/log"
        return
    }
    if timeout 100 "$scratch/fault" quick >"$scratch/out" 2>&1; then
        result 1 "found: $1"
    else
        result 0 "found: $1"
        tail -n 1 "$scratch/out" | sed 's/^/# /'
    fi
}

fault 'a lost shuffle' '/__shfl_xor_sync(FULL, word, 4)/d'
fault 'the wrong order of lanes' 's/lane_of() % 8 ^ 1/lane_of() % 8/'
fault 'the wrong order of bytes' 's/0x0123/0x3210/'
fault 'a missing bound' 's/^        if (i < size) {/        if (i < TILE) {/'
fault 'a lost partial sum' \
    's/i = threadIdx.x; i < gridDim.x/i = threadIdx.x + 1; i < gridDim.x/'
fault 'a skipped barrier' \
    '/parts\[threadIdx.x \/ WARP\] = sum;/{n;d;}'
fault 'a barrier for some' \
    's/^        last = atomicInc/        __syncthreads(), last = atomicInc/'
fault 'a shuffle for some' \
    's/^    word |= __shfl_xor_sync(FULL, word, 1)/    if (lane_of()) &/'
fault 'alignment that is not looked at' 's/is_aligned<E>(x) &&//'
fault 'a row without a scale' \
    's/r < a.rows.ranks; r += THREADS/r + 1 < a.rows.ranks; r += THREADS/'
fault 'a zero that is negative' 's/u.at\[j\] < 0 ? 0/u.at[j] <= 0 ? 0/'
fault 'a sum over one row too few' \
    's/P ? P : (int)a.rows.ranks/P ? P - 1 : (int)a.rows.ranks/'
fault 'padding that is read' \
    's/i < inside ? E::get(x\[i\]) : 0/E::get(x[i])/'
fault 'jobs that share a counter' 's/grid.arrived + blockIdx.y/grid.arrived/'
fault 'jobs that share partial sums' 's/(size_t)blockIdx.y \* gridDim.x/0/'
fault 'a piece of rows that begins with them' \
    's/at = from + index % per_row/at = index % per_row/'
fault 'a piece of rows that does not end' \
    's/left < to - at ? left : to - at/left/'
fault 'the size of another job' 's/jobs.tiles\[blockIdx.y\]/jobs.tiles[0]/'
tap_done
