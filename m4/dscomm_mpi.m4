# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_MPI: an MPI for backends/mpi, through pkg-config, else through what
# mpicc says it would do, else by its header and libmpi. The tree itself is never
# compiled by mpicc.
# Sets have_mpi, dscomm_mpi, MPI_CFLAGS, MPI_LIBS.
AC_DEFUN([DSCOMM_MPI],
[DSCOMM_ARG_WITH([mpi], [backend on an MPI library],
    [bin/mpicc, or include/mpi.h and lib/libmpi.so])
AC_ARG_VAR([MPI_CFLAGS], [flags for MPI, with MPI_LIBS])
AC_ARG_VAR([MPI_LIBS], [libraries of MPI, in place of a search])
dscomm_mpi_found=
dscomm_mpi_why=
AS_IF([test "$with_mpi" != no], [
    AC_MSG_CHECKING([for MPI])
    DSCOMM_MPI_FLAGS
    DSCOMM_TRY_LINK([MPI], [@%:@include <mpi.h>],
        [int flag; return MPI_Initialized(&flag);],
        [DSCOMM_MPI_NAME])
    DSCOMM_EXPLAIN([mpi], [MPI],
        [neither mpi-c.pc, ompi-c.pc or mpich.pc, nor mpicc, nor include/mpi.h and libmpi])
    AC_MSG_RESULT([${dscomm_mpi_found:-no}])
])
DSCOMM_DECIDE([mpi], [backends/mpi/mpi.c])
AM_CONDITIONAL([HAVE_MPI], [test "$have_mpi" = yes])
])

AC_DEFUN([DSCOMM_MPI_FLAGS],
[for dscomm_module in mpi-c ompi-c mpich; do
    AS_IF([test -z "$MPI_LIBS"],
        [DSCOMM_FIND_PC([mpi], [MPI], [$dscomm_module])])
done
AS_IF([test -z "$MPI_LIBS"], [
    for dscomm_word in `${dscomm_mpi_dir:+$dscomm_mpi_dir/bin/}mpicc -show 2>/dev/null`; do
        AS_CASE([$dscomm_word],
            [-I*|-D*], [MPI_CFLAGS="$MPI_CFLAGS $dscomm_word"],
            [-L*|-l*], [MPI_LIBS="$MPI_LIBS $dscomm_word"])
    done])
AS_IF([test -z "$MPI_LIBS"],
    [DSCOMM_FIND_FILES([mpi], [MPI], [mpi.h], [mpi])])
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
