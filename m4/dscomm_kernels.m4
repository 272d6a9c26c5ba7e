# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_KERNELS: flags for the reduction kernels, which are files of their own.
# Sets KERNEL_CFLAGS, and for each row that the compiler can make its condition
# and its flags; dscomm_kernels names the rows.
AC_DEFUN([DSCOMM_KERNELS],
[# A user's -O2 comes later than -O3 but leaves single options alone.
for dscomm_flag in -O3 -ftree-vectorize -fvect-cost-model=dynamic \
    -ffp-contract=off -fno-math-errno -fno-trapping-math; do
    DSCOMM_TRY_FLAG([KERNEL_CFLAGS], [$dscomm_flag])
done
AC_SUBST([KERNEL_CFLAGS])
dscomm_kernels=c
DSCOMM_KERNELS_ROW([avx2], [AVX2], [-mavx2 -mf16c], [[
#include <immintrin.h>
typedef float f32v __attribute__((vector_size(32)));
typedef int i32v __attribute__((vector_size(32)));
i32v f(f32v a) { return __builtin_convertvector(a + _mm256_cvtph_ps(
    _mm_setzero_si128()), i32v) + (i32v)(a < 2); }
#if !defined(__x86_64__)
#error
#endif
]])
DSCOMM_KERNELS_ROW([avx512], [AVX512],
    [-mavx2 -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl], [[
#include <immintrin.h>
typedef int i32v __attribute__((vector_size(64)));
i32v f(i32v a) { return a + (i32v)_mm512_min_epu8((__m512i)a,
    _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_setzero_si256(), 1)); }
#if !defined(__x86_64__)
#error
#endif
]])
DSCOMM_KERNELS_ROW([neon], [NEON], [], [[
#include <arm_neon.h>
#if !defined(__aarch64__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error
#endif
]])
])

# DSCOMM_KERNELS_ROW(NAME, VARIABLE, FLAGS, SOURCE)
AC_DEFUN([DSCOMM_KERNELS_ROW],
[AC_MSG_CHECKING([whether $CC makes kernels for $1])
dscomm_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS $3"
AC_COMPILE_IFELSE([AC_LANG_SOURCE([$4])],
    [dscomm_row=yes
     dscomm_kernels="$1 $dscomm_kernels"
     AC_DEFINE([HAVE_KERNELS_$2], [1], [There are kernels for $1])],
    [dscomm_row=no])
CFLAGS=$dscomm_save_CFLAGS
AC_MSG_RESULT([$dscomm_row])
AM_CONDITIONAL([KERNELS_$2], [test "$dscomm_row" = yes])
AC_SUBST([$2_CFLAGS], ["$3"])
])
