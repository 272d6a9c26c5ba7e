# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_KERNELS: flags for the reduction kernels, which are files of their own.
# Sets KERNEL_CFLAGS.
AC_DEFUN([DSCOMM_KERNELS],
[# A user's -O2 comes later than -O3 but leaves single options alone.
for dscomm_flag in -O3 -ftree-vectorize -fvect-cost-model=dynamic \
    -ffp-contract=off -fno-math-errno -fno-trapping-math; do
    DSCOMM_TRY_FLAG([KERNEL_CFLAGS], [$dscomm_flag])
done
AC_SUBST([KERNEL_CFLAGS])
])
