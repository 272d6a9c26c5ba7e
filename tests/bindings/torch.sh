#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The backend of torch.distributed, as pip has installed it in this build: what it computes.

. "$abs_top_srcdir/tests/tap.sh"
. "$abs_top_srcdir/tests/bindings/site.sh"

for ranks in 1 2 3 4; do
    torchrun $ranks "$programs/torch-ranks.py"
done
for ranks in 1 2 3; do
    torchrun $ranks "$programs/torch-failures.py"
done
torchrun 3 "$programs/torch-store.py"
torchrun 2 "$programs/torch-parallel.py"
torchrun 4 "$programs/torch-parallel.py"

# CUDA tensors on devices that are no hardware
headers=$("$python" -c \
    'import nvidia.cu13 as cuda; print(cuda.__path__[0] + "/include")' 2>"$scratch/err")
if [ -f "$headers/cuda_runtime_api.h" ]; then
    # CC may hold flags.
    # shellcheck disable=SC2086
    $CC -fPIC -shared -Wl,-soname,libcuda.so.1 -I"$abs_top_srcdir" -I"$abs_top_srcdir/lib" \
        -I"$abs_top_builddir" -I"$abs_top_builddir/lib" -isystem "$headers" \
        -o "$scratch/fake-cuda.so" "$programs/fake-cuda.c" \
        "$abs_top_srcdir/tests/compression/fake-memory.c" >"$scratch/log" 2>&1
    result $? 'a fake of CUDA' || sed 's/^/# /' "$scratch/log" | tail -n 20
    for ranks in 1 2 3; do
        LD_PRELOAD=$scratch/fake-cuda.so torchrun $ranks "$programs/torch-cuda.py"
    done
else
    skip 'CUDA tensors' "this torch was built without CUDA 13"
fi

# A part of PyTorch's own tests; make check-torch runs all.
if has expecttest, hypothesis; then
    suite --list "$programs/torch-suite.quick"
    is "$(grep -c . "$results")" "$(grep -c '^test_' "$programs/torch-suite.quick")" \
        "results of PyTorch's own tests"
    while IFS="$(printf '\t')" read -r name passed _ reason; do
        [ "$passed" = pass ]
        result $? "PyTorch's $name" || echo "# $passed: $reason"
    done <"$results"
else
    skip "PyTorch's own tests" "$python has no expecttest or hypothesis"
fi
tap_done
