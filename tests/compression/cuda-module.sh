#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# CUDA is in the module cuda.so and nowhere else; the module has one symbol, and
# says why it cannot be used where there is no device.

. "$abs_top_srcdir/tests/tap.sh"

module=$abs_top_builddir/compression/.libs/cuda.so

# needed FILE: the libraries that it is linked to
needed()
{
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

# names FILE: the dynamic symbols
names()
{
    # NM may hold flags.
    # shellcheck disable=SC2086
    $NM -D "$1" | sed 's/.* //'
}

for library in "$abs_top_builddir"/lib/.libs/libdscomm.so \
    "$abs_top_builddir"/compression/.libs/libdscomm-compression.so \
    "$abs_top_builddir"/backends/.libs/*.so; do
    is "$(needed "$library" | grep -i 'cuda\|libstdc')" '' \
        "${library##*/} is linked to no library of CUDA"
    is "$(names "$library" | grep '^cu[A-Z]\|^cuda\|^__cuda')" '' \
        "${library##*/} has no symbol of CUDA"
done
if [ ! -e "$module" ]; then
    skip 'cuda.so' 'configured without CUDA'
    tap_done
    exit
fi

is "$(needed "$module" | grep -i cuda)" '' 'cuda.so has the runtime inside'
# shellcheck disable=SC2086
is "$($NM -D --defined-only "$module" | awk '$2 != "A" { print $3 }')" \
    dscomm_device_cuda 'and one symbol'
readelf -d "$module" | grep -q 'NODELETE'
result $? 'it stays loaded'

cat >"$scratch/load.c" <<'END'
#include "compression/device/ops.h"
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *handle = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    dscomm_device_module_t entry;
    const dscomm_device_ops_t *ops;

    if (!handle) {
        puts(dlerror());
        return 1;
    }
    *(void **)&entry = dlsym(handle, DSCOMM_DEVICE_SYMBOL);
    ops = entry(DSCOMM_DEVICE_ABI);
    printf("%d %s\n", !entry(DSCOMM_DEVICE_ABI + 1),
           ops->why() ? ops->why() : "a device");
    return ops->abi != DSCOMM_DEVICE_ABI;
}
END
# CC and the flags may be several words.
# shellcheck disable=SC2086
$CC $SANITIZER_FLAGS -I"$abs_top_srcdir" "$scratch/load.c" -ldl \
    -o "$scratch/load" 2>"$scratch/log" || sed 's/^/# /' "$scratch/log"
said=$("$scratch/load" "$module")
result $? 'it loads'
wanted='no CUDA driver|no CUDA device|CUDA says|driver is of version|a device'
[ -z "$DSCOMM_REQUIRE_CUDA" ] || wanted='a device'
like "$said" "^1 ($wanted)" "it knows its ABI, and says: ${said#* }"

# Of three formats each worker, unpack and take_back; server for 2, 4, 8 and any
# ranks; materialise.
kernels=14
disassembler=$(command -v cuobjdump || echo "${NVCC%/*}/cuobjdump")

# machine CODE: no instruction reads or writes the memory of a thread
machine()
{
    [ -x "$disassembler" ] || {
        skip 'no local memory' 'there is no cuobjdump'
        return
    }
    "$disassembler" -sass "$1" >"$scratch/sass"
    is "$(grep -c 'Function :' "$scratch/sass") $(
        grep -cw 'LDL\|STL' "$scratch/sass")" "$kernels 0" 'no local memory'
}

# NVCC may hold flags.
# shellcheck disable=SC2086
for arch in 80 90 100; do
    $NVCC --list-gpu-arch | grep -q "compute_$arch$" || continue
    $NVCC -std=c++17 -fmad=false -O3 -arch="sm_$arch" -Xptxas -v -cubin \
        -I"$abs_top_srcdir" -o "$scratch/cubin" \
        "$abs_top_srcdir/compression/cuda/kernels.cu" >"$scratch/log" 2>&1
    result $? "the kernels are compiled for sm_$arch"
    is "$(grep -c 'Compiling entry function' "$scratch/log")" $kernels \
        "so many kernels"
    is "$(grep -c ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill l' \
        "$scratch/log")" $kernels 'none of them spills registers' ||
        grep -B1 '[1-9][0-9]* bytes' "$scratch/log" | sed 's/^/# /'
    machine "$scratch/cubin"
done
tap_done
