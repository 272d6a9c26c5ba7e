#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tests of the kernels for 64-bit ARM, where a compiler for that and an emulator
# are installed; on such a processor itself they are tests like all others.

. "$abs_top_srcdir/tests/tap.sh"

compiler=$(command -v aarch64-linux-gnu-gcc) ||
    skip_all 'no aarch64-linux-gnu-gcc'
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64) ||
    skip_all 'no qemu-aarch64'

# What the processor has no instruction for
missing=2

# There is no GLib for that processor: config.h, cpu.c and op.c are replaced. Operators
# are numbers here.
echo '#define HAVE_KERNELS_NEON 1' >"$scratch/config.h"
cat >"$scratch/cpu.c" <<'EOF'
#include "lib/base/cpu.h"
#include "lib/base/op.h"
#include "lib/base/types.h"

const char *dscomm_op_name(dscomm_op_t op)
{
    static const char *const digits[] = {"0", "1", "2", "3", "4",
                                         "5", "6", "7", "8"};

    return digits[op];
}

int dscomm_op_applies(dscomm_op_t op, dscomm_dtype_t dtype)
{
    return dscomm_priv_applies[op] >> dtype & 1;
}

uint64_t dscomm_priv_cpu_features(void)
{
    return CPU_NEON;
}
EOF

# compile FILE...: to objects in the scratch folder
compile()
(
    cd "$scratch" || exit
    for file in "$@"; do
        "$compiler" -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 \
            -ftree-vectorize -ffp-contract=off -fno-math-errno \
            -fno-trapping-math -I. -I"$abs_top_srcdir" \
            -I"$abs_top_srcdir/lib" -c "$file" || exit
    done
)

lib=$abs_top_srcdir/lib
compile "$lib/reduce/neon.c" "$lib/reduce/c.c" "$lib/reduce/kernels.c" "$lib/base/types.c" \
    "$lib/base/collectives.c" cpu.c >"$scratch/log" 2>&1
result $? 'the kernels are compiled' || sed -n '1,40s/^/# /p' "$scratch/log"
mkdir "$scratch/lib"
mv "$scratch"/*.o "$scratch/lib"

for name in kernels kernels-vector; do
    compile "$abs_top_srcdir/tests/lib/reduce/$name.c" >"$scratch/log" 2>&1 &&
        "$compiler" -static -pthread "$scratch/$name.o" "$scratch"/lib/*.o -lm \
            -o "$scratch/$name" >>"$scratch/log" 2>&1 &&
        "$emulator" "$scratch/$name" >"$scratch/$name.out" 2>>"$scratch/log"
    result $? "$name passes" ||
        cat "$scratch/log" "$scratch/$name.out" | grep -v '^ok' | sed 's/^/# /'
done
all=$(grep -c '^ok .* c: [a-z0-9_]*, ' "$scratch/kernels.out")
is "$(grep -c '^ok .* neon: ' "$scratch/kernels.out")" $((all - missing)) \
    'all but two are there'
tap_done
