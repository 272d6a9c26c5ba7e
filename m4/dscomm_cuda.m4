# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_CUDA: an nvcc that compiles a kernel here; its version alone says
# nothing about whether it likes the host's compiler.
# Sets have_cuda, dscomm_cuda, NVCC, NVCCFLAGS, CUDA_CPPFLAGS, CUDA_LIBS.
AC_DEFUN([DSCOMM_CUDA],
[DSCOMM_ARG_WITH([cuda], [kernels for NVIDIA devices])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [flags for nvcc, -gencode and -ccbin among them])
dscomm_cuda_found=
dscomm_cuda_why=
AS_IF([test "$with_cuda" != no], [
    AS_IF([test -n "$dscomm_cuda_dir"],
        [AC_PATH_PROG([NVCC], [nvcc], [], [$dscomm_cuda_dir/bin])],
        [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH:/usr/local/cuda/bin])])
    AS_IF([test -z "$NVCC"], [dscomm_cuda_why="nvcc not found"],
        [AC_MSG_CHECKING([whether $NVCC compiles a kernel])
         DSCOMM_CUDA_TRY
         AC_MSG_RESULT([${dscomm_cuda_found:-no}])])
])
DSCOMM_DECIDE([cuda], [compression/cuda/cuda.c])
AS_IF([test "$have_cuda" = yes], [
    dscomm_cuda_dir=`AS_DIRNAME(["$NVCC"])`/..
    CUDA_CPPFLAGS=-I$dscomm_cuda_dir/include
    CUDA_LIBS="-L$dscomm_cuda_dir/lib64 -lcudart_static -ldl -lrt -lpthread -lstdc++"])
AC_SUBST([CUDA_CPPFLAGS])
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
