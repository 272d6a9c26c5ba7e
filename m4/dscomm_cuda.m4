# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_CUDA: an nvcc that compiles a kernel here, and the runtime that came with
# it; its version alone says nothing about whether it likes the host's compiler.
# Sets have_cuda, dscomm_cuda, NVCC, NVCCFLAGS, CUDA_CFLAGS, CUDA_LIBS.
AC_DEFUN([DSCOMM_CUDA],
[DSCOMM_ARG_WITH([cuda], [kernels for NVIDIA devices],
    [bin/nvcc, include/cuda_runtime.h and lib64/libcudart_static.a])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [flags for nvcc, -gencode and -ccbin among them])
CUDA_CFLAGS=
CUDA_LIBS=
dscomm_cuda_found=
dscomm_cuda_why=
AS_IF([test "$with_cuda" != no], [
    AS_IF([test -n "$NVCC"], [],
          [test -n "$dscomm_cuda_dir"],
              [test ! -x "$dscomm_cuda_dir/bin/nvcc" ||
                   NVCC=$dscomm_cuda_dir/bin/nvcc],
          [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH:/usr/local/cuda/bin])])
    AS_IF([test -n "$NVCC"],
        [AC_MSG_CHECKING([whether $NVCC compiles a kernel])
         DSCOMM_CUDA_TRY
         AC_MSG_RESULT([${dscomm_cuda_found:-no}])],
        [test -n "$dscomm_cuda_dir"],
        [dscomm_cuda_why="no bin/nvcc in $dscomm_cuda_dir"],
        [dscomm_cuda_why="nvcc not found"])
])
AS_IF([test -n "$dscomm_cuda_found"], [DSCOMM_CUDA_RUNTIME])
DSCOMM_DECIDE([cuda], [compression/cuda/cuda.c])
AC_SUBST([CUDA_CFLAGS])
AC_SUBST([CUDA_LIBS])
AM_CONDITIONAL([HAVE_CUDA], [test "$have_cuda" = yes])
])

AC_DEFUN([DSCOMM_CUDA_TRY],
[cat >conftest.cu <<'_DSCOMM_EOF'
__global__ void dscomm_kernel(float *x) { x[[threadIdx.x]] += 1.0f; }
int main(void) { dscomm_kernel<<<1, 32>>>(nullptr); return 0; }
_DSCOMM_EOF
AS_IF([$NVCC -forward-unknown-to-host-compiler -std=c++17 -fPIC $NVCCFLAGS \
           -c -o conftest.o conftest.cu >&AS_MESSAGE_LOG_FD 2>&1],
    [dscomm_cuda_found="CUDA `$NVCC --version |
         $SED -n 's/.*release \(@<:@0-9.@:>@*\).*/\1/p'`"],
    [dscomm_cuda_why="$NVCC does not compile a kernel, see config.log"])
rm -f conftest.cu conftest.o
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
