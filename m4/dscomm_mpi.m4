# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_MPI: an MPI for backends/mpi, through pkg-config, else through what
# mpicc says it would do. The tree itself is never compiled by mpicc.
# Sets have_mpi, dscomm_mpi, MPI_CFLAGS, MPI_LIBS.
AC_DEFUN([DSCOMM_MPI],
[DSCOMM_ARG_WITH([mpi], [backend on an MPI library])
dscomm_mpi_found=
dscomm_mpi_why=
AS_IF([test "$with_mpi" != no], [
    AC_MSG_CHECKING([for MPI])
    DSCOMM_MPI_FLAGS
    AS_IF([test -z "$MPI_LIBS"],
        [dscomm_mpi_why="neither pkg-config nor mpicc knows an MPI"],
        [DSCOMM_TRY_LINK([MPI], [@%:@include <mpi.h>],
            [int flag; return MPI_Initialized(&flag);],
            [DSCOMM_MPI_NAME],
            [dscomm_mpi_why="a program with $MPI_LIBS does not link"])])
    AC_MSG_RESULT([${dscomm_mpi_found:-no}])
])
DSCOMM_DECIDE([mpi], [backends/mpi/mpi.c])
AC_SUBST([MPI_CFLAGS])
AC_SUBST([MPI_LIBS])
AM_CONDITIONAL([HAVE_MPI], [test "$have_mpi" = yes])
])

AC_DEFUN([DSCOMM_MPI_FLAGS],
[AS_IF([test -z "$MPI_LIBS"], [
    for dscomm_module in mpi-c ompi-c mpich; do
        DSCOMM_PKG_CONFIG([mpi], [MPI], [$dscomm_module])
        test -z "$dscomm_pc_version" || break
    done])
AS_IF([test -z "$MPI_LIBS"], [
    dscomm_mpicc=mpicc
    test -z "$dscomm_mpi_dir" || dscomm_mpicc=$dscomm_mpi_dir/bin/mpicc
    for dscomm_word in `$dscomm_mpicc -show 2>/dev/null`; do
        AS_CASE([$dscomm_word],
            [-I*|-D*], [MPI_CFLAGS="$MPI_CFLAGS $dscomm_word"],
            [-L*|-l*], [MPI_LIBS="$MPI_LIBS $dscomm_word"])
    done])
])

# Which one it is, from its header.
AC_DEFUN([DSCOMM_MPI_NAME],
[dscomm_mpi_found="an MPI of unknown name"
cat >conftest.c <<'_DSCOMM_EOF'
#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION)
found: Open MPI OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION
#elif defined(MPICH_VERSION)
found: MPICH MPICH_VERSION
#endif
_DSCOMM_EOF
dscomm_word=`$CC -E -P $MPI_CFLAGS $CPPFLAGS conftest.c 2>/dev/null |
    $SED -n '/^found: */{s///;s/ *\. */./g;s/"//g;p;}'`
rm -f conftest.c
test -z "$dscomm_word" || dscomm_mpi_found=$dscomm_word
])
