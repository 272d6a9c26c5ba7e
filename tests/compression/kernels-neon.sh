#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The test of the codecs' kernels for 64-bit ARM, where a compiler for that and an
# emulator are installed; on such a processor itself it is a test like all others.

. "$abs_top_srcdir/tests/tap.sh"

compiler=$(command -v aarch64-linux-gnu-gcc) ||
    skip_all 'no aarch64-linux-gnu-gcc'
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64) ||
    skip_all 'no qemu-aarch64'

# There is no GLib for that processor: config.h and kernels.c are replaced.
: >"$scratch/config.h"
cat >"$scratch/rows.c" <<'EOF2'
#include "compression/codecs/kernels.h"

#include <dscomm/info.h>

const char *dscomm_kernels(void)
{
    return "neon c";
}

const dscomm_codec_kernels_t *dscomm_priv_codec_kernels_row(size_t index)
{
    const dscomm_codec_kernels_t *const rows[] = {
        &dscomm_priv_codec_kernels_neon, &dscomm_priv_codec_kernels_c};

    return index < 2 ? rows[index] : 0;
}
EOF2

folder=$abs_top_srcdir/compression/codecs
"$compiler" -static -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 \
    -ftree-vectorize -ffp-contract=off -fno-math-errno -fno-trapping-math \
    -I"$scratch" -I"$abs_top_srcdir" -I"$abs_top_srcdir/lib" \
    "$folder/kernels-c.c" "$folder/kernels-neon.c" "$scratch/rows.c" \
    "$abs_top_srcdir/tests/compression/kernels.c" -lm -o "$scratch/kernels" \
    >"$scratch/log" 2>&1
result $? 'the kernels are compiled' || sed -n '1,40s/^/# /p' "$scratch/log"
"$emulator" "$scratch/kernels" >"$scratch/out" 2>&1
result $? 'and pass' || grep -v '^ok' "$scratch/out" | sed 's/^/# /'
is "$(grep -c '^ok .* neon: ' "$scratch/out")" 51 'fifteen kernels of three kinds, and six endings for float16'
tap_done
