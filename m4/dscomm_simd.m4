# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_SIMD: flags for all kernels, and for those of one instruction set each.
# They apply to files of their own, whose code runs only where the processor has
# the set. Sets KERNEL_CFLAGS, AVX2_CFLAGS, AVX512_CFLAGS, HAVE_AVX2,
# HAVE_AVX512, dscomm_simd.
AC_DEFUN([DSCOMM_SIMD],
[dscomm_simd=
# A user's -O2 comes later than -O3 but leaves single options alone.
for dscomm_flag in -O3 -ftree-vectorize -fvect-cost-model=dynamic \
    -ffp-contract=off -fno-math-errno -fno-trapping-math; do
    DSCOMM_TRY_FLAG([KERNEL_CFLAGS], [$dscomm_flag])
done
AC_SUBST([KERNEL_CFLAGS])
have_avx2=no
have_avx512=no
AC_SUBST([AVX2_CFLAGS], ["-mavx2 -mfma -mf16c"])
AC_SUBST([AVX512_CFLAGS],
    ["-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c"])
AS_CASE([$host_cpu], [x86_64|amd64|i?86],
    [DSCOMM_SIMD_TRY([avx2], [$AVX2_CFLAGS],
        [__m256 a = _mm256_cvtph_ps(_mm_set1_epi16(1));
         return (int)_mm256_cvtss_f32(_mm256_fmadd_ps(a, a, a));])
     DSCOMM_SIMD_TRY([avx512], [$AVX512_CFLAGS],
        [return (int)_mm512_reduce_add_epi64(_mm512_set1_epi64(1));])])
AM_CONDITIONAL([HAVE_AVX2], [test "$have_avx2" = yes])
AM_CONDITIONAL([HAVE_AVX512], [test "$have_avx512" = yes])
])

# DSCOMM_SIMD_TRY(NAME, FLAGS, BODY)
AC_DEFUN([DSCOMM_SIMD_TRY],
[AC_MSG_CHECKING([whether $CC compiles for $1])
dscomm_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS $2"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([@%:@include <immintrin.h>], [$3])],
    [have_$1=yes
     dscomm_simd="$dscomm_simd $1"
     AC_DEFINE(AS_TR_CPP([HAVE_$1]), [1], [Define if there are $1 kernels])])
CFLAGS=$dscomm_save_CFLAGS
AC_MSG_RESULT([$have_$1])
])
