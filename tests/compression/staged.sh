#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers of a CUDA device that the module cannot use, if there is one: compressed
# in host memory, and the log says why.

. "$abs_top_srcdir/tests/tap.sh"

case $SANITIZER_FLAGS in
*-fsanitize*) skip_all 'the stand-in for CUDA does not do with sanitizers' ;;
esac
cuda=$abs_top_builddir/tests/lib/device/.libs
[ -e "$cuda/libcuda.so.1" ] || skip_all 'the stand-in for CUDA is no shared library'
LD_LIBRARY_PATH=$cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
DSCOMM_LOG=compression:info
DSCOMM_BACKEND=shm
export LD_LIBRARY_PATH DSCOMM_LOG DSCOMM_BACKEND

"$abs_top_builddir/tools/dscomm" run -n 2 \
    "$abs_top_builddir/tests/compression/staged" \
    >"$scratch/out" 2>"$scratch/err" </dev/null
is "$? $(grep -c content "$scratch/out")" '0 2' 'both ranks are content' ||
    sed 's/^/# /' "$scratch/err"
is "$(grep -c 'buffers of a device are compressed in host memory: ' \
    "$scratch/err")" 2 'each has said so once' ||
    sed 's/^/# /' "$scratch/err"
said=$(sed -n 's/.*in host memory: //p' "$scratch/err" | tail -n 1)
[ -n "$said" ]
result $? "and why: $said"
tap_done
