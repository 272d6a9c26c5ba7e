# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_CUDA: an nvcc that compiles a kernel here, the runtime that came with it,
# and a program that links with both; its version alone says nothing about whether
# it likes the host's compiler. Sets have_cuda, dscomm_cuda, NVCC, NVCC_BASE,
# NVCCFLAGS, CUDA_GENCODE, CUDA_CFLAGS, CUDA_LIBS.
AC_DEFUN([DSCOMM_CUDA],
[DSCOMM_ARG_WITH([cuda], [kernels for NVIDIA devices],
    [bin/nvcc, include/cuda_runtime.h and lib64/libcudart_static.a])
AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST],
                    [devices to compile for, as in "80 90"; the last one as PTX
                     too @<:@70 75 80 90 100 120, where nvcc has them@:>@])],
    [AS_IF([echo "$with_cuda_arch" |
            grep -Eqx '[[0-9]]+[[a-z]]?([[ ,]]+[[0-9]]+[[a-z]]?)*'], [],
        [AC_MSG_ERROR([--with-cuda-arch=$with_cuda_arch: give numbers, as in "80 90"])])],
    [with_cuda_arch=])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [flags for nvcc, -ccbin among them])
# No product may be fused into a sum, and division and roots are those of IEEE:
# the results of the host to the last bit.
NVCC_BASE="-forward-unknown-to-host-compiler -std=c++17 -fmad=false"
: "${NVCCFLAGS=-O3}"
CUDA_GENCODE=
CUDA_CFLAGS=
CUDA_LIBS=
dscomm_cuda_found=
dscomm_cuda_why=
AS_IF([test "$with_cuda" != no], [
    AS_IF([test -n "$NVCC"], [],
          [test -n "$dscomm_cuda_dir"],
              [test ! -x "$dscomm_cuda_dir/bin/nvcc" ||
                   NVCC=$dscomm_cuda_dir/bin/nvcc],
          [AC_PATH_PROG([NVCC], [nvcc], [],
               [$PATH${CUDA_HOME:+:$CUDA_HOME/bin}:/usr/local/cuda/bin])])
    AS_IF([test -n "$NVCC"],
        [AC_MSG_CHECKING([whether $NVCC compiles a kernel])
         DSCOMM_CUDA_VERSION
         AS_IF([test -n "$dscomm_cuda_found"], [DSCOMM_CUDA_ARCH])
         AS_IF([test -n "$dscomm_cuda_found"], [DSCOMM_CUDA_TRY])
         AC_MSG_RESULT([${dscomm_cuda_found:-no}])],
        [test -n "$dscomm_cuda_dir"],
        [dscomm_cuda_why="no bin/nvcc in $dscomm_cuda_dir"],
        [dscomm_cuda_why="nvcc not found"])
])
AS_IF([test -n "$dscomm_cuda_found"], [DSCOMM_CUDA_RUNTIME])
AS_IF([test -n "$dscomm_cuda_found"], [DSCOMM_CUDA_LINK])
rm -f conftest.cu conftest_cuda.o
DSCOMM_DECIDE([cuda], [compression/cuda/cuda.c])
AC_SUBST([NVCC_BASE])
AC_SUBST([CUDA_GENCODE])
AC_SUBST([CUDA_CFLAGS])
AC_SUBST([CUDA_LIBS])
AM_CONDITIONAL([HAVE_CUDA], [test "$have_cuda" = yes])
])

# A wrapper may have been left behind by a toolkit that is gone.
AC_DEFUN([DSCOMM_CUDA_VERSION],
[dscomm_cuda_found=`$NVCC --version 2>&AS_MESSAGE_LOG_FD |
    $SED -n 's/.*release \(@<:@0-9.@:>@*\).*/CUDA \1/p'`
test -n "$dscomm_cuda_found" || dscomm_cuda_why="$NVCC does not run, see config.log"
])

# Machine code for each, which serves the later devices of its family too, and for
# all later ones the last of them as PTX. A suffix, as in 90a, is not listed.
AC_DEFUN([DSCOMM_CUDA_ARCH],
[dscomm_cuda_known=`$NVCC --list-gpu-arch 2>&AS_MESSAGE_LOG_FD |
    $SED 's/compute_//' | tr '\n' ' '`
dscomm_cuda_last=
for dscomm_word in `echo "${with_cuda_arch:-70 75 80 90 100 120}" | tr , ' '`; do
    AS_CASE([" $dscomm_cuda_known "],
        [*" `echo "$dscomm_word" | $SED 's/@<:@a-z@:>@$//'` "*],
            [dscomm_cuda_last=$dscomm_word
             CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$dscomm_word,code=sm_$dscomm_word"],
        [test -z "$with_cuda_arch" ||
             dscomm_cuda_why="--with-cuda-arch: $NVCC knows no $dscomm_word, but $dscomm_cuda_known"])
done
AS_IF([test -n "$dscomm_cuda_last"],
    [CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$dscomm_cuda_last,code=compute_$dscomm_cuda_last"],
    [test -n "$dscomm_cuda_why" ||
         dscomm_cuda_why="$NVCC lists no device that is compiled for"])
test -z "$dscomm_cuda_why" || dscomm_cuda_found=
])

AC_DEFUN([DSCOMM_CUDA_TRY],
[cat >conftest.cu <<'_DSCOMM_EOF'
__global__ void dscomm_kernel(float *x) { x[[threadIdx.x]] += 1.0f; }
extern "C" void dscomm_launch(void) { dscomm_kernel<<<1, 32>>>(nullptr); }
_DSCOMM_EOF
AS_IF([$NVCC $NVCC_BASE -fPIC $CUDA_GENCODE $NVCCFLAGS \
           -c -o conftest_cuda.o conftest.cu >&AS_MESSAGE_LOG_FD 2>&1], [],
    [dscomm_cuda_found=
     dscomm_cuda_why="$NVCC does not compile a kernel, see config.log"])
])

# The folder of the runtime is the user's, or the one that nvcc is in, which may
# be reached through a link.
AC_DEFUN([DSCOMM_CUDA_RUNTIME],
[dscomm_cuda_save=$dscomm_cuda_dir
for dscomm_word in "$NVCC" "`readlink -f "$NVCC" 2>/dev/null`"; do
    AS_IF([test -z "$CUDA_LIBS"], [
        test -n "$dscomm_cuda_save" || dscomm_cuda_dir=${dscomm_word%/bin/*}
        DSCOMM_FIND_FILES([cuda], [CUDA], [cuda_runtime.h], [cudart_static])])
done
AS_IF([test -n "$CUDA_LIBS"],
    [CUDA_LIBS="$CUDA_LIBS -ldl -lrt -lpthread -lstdc++"],
    [dscomm_cuda_found=
     dscomm_cuda_why="no include/cuda_runtime.h and libcudart_static in $dscomm_cuda_dir"])
dscomm_cuda_dir=$dscomm_cuda_save
])

# What nvcc makes needs some of the C++ library, so the C compiler may link it.
AC_DEFUN([DSCOMM_CUDA_LINK],
[AC_MSG_CHECKING([whether $CC links it])
dscomm_save_LIBS=$LIBS
LIBS="conftest_cuda.o $CUDA_LIBS $LIBS"
AC_LINK_IFELSE([AC_LANG_PROGRAM([void dscomm_launch(void);], [dscomm_launch()])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     dscomm_cuda_found=
     dscomm_cuda_why="no kernel links with $CUDA_LIBS, see config.log"])
LIBS=$dscomm_save_LIBS
])
