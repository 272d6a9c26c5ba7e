# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_MPI: the MPI libraries that backends/mpi has engines for: Open MPI, and
# MPICH with those that share its ABI. Debian has both side by side. Each is found
# through its own pkg-config file; where there is neither, or the user has named a
# place, whatever MPI is there: through pkg-config, what its mpicc says it would
# do, or, where nothing links so, its header and libmpi. The tree itself is never
# compiled by mpicc.
# Sets have_mpi, dscomm_mpi, have_openmpi, have_mpich, and CFLAGS and LIBS of
# OPENMPI and MPICH.
AC_DEFUN([DSCOMM_MPI],
[DSCOMM_ARG_WITH([mpi], [backend on MPI libraries],
    [bin/mpicc, or include/mpi.h and lib/libmpi.so])
AC_ARG_VAR([MPI_CFLAGS], [flags for the only MPI, with MPI_LIBS])
AC_ARG_VAR([MPI_LIBS], [libraries of the only MPI, in place of a search])
dscomm_mpi_given=$MPI_LIBS
dscomm_mpi_found=
dscomm_mpi_why=
have_openmpi=no
have_mpich=no
AS_IF([test "$with_mpi" != no], [
    AC_MSG_CHECKING([for MPI])
    AS_IF([test -z "$MPI_LIBS$dscomm_mpi_dir"], [
        DSCOMM_FIND_PC([mpi], [MPI], [ompi-c])
        DSCOMM_MPI_TAKE
        MPI_CFLAGS=
        MPI_LIBS=
        DSCOMM_FIND_PC([mpi], [MPI], [mpich])
        DSCOMM_MPI_TAKE])
    AS_IF([test -z "$dscomm_mpi_found"], [
        DSCOMM_MPI_FLAGS
        DSCOMM_MPI_TAKE])
    AS_IF([test -z "$dscomm_mpi_found$dscomm_mpi_given"], [
        DSCOMM_FIND_FILES([mpi], [MPI], [mpi.h], [mpi])
        DSCOMM_MPI_TAKE])
    DSCOMM_EXPLAIN([mpi], [MPI],
        [neither ompi-c.pc, mpich.pc or mpi-c.pc, nor mpicc, nor include/mpi.h and libmpi])
    AC_MSG_RESULT([${dscomm_mpi_found:-no}])
])
DSCOMM_DECIDE([mpi], [backends/mpi/mpi.c])
AC_SUBST([OPENMPI_CFLAGS])
AC_SUBST([OPENMPI_LIBS])
AC_SUBST([MPICH_CFLAGS])
AC_SUBST([MPICH_LIBS])
AM_CONDITIONAL([HAVE_MPI], [test "$have_mpi" = yes])
AM_CONDITIONAL([HAVE_OPENMPI], [test "$have_mpi$have_openmpi" = yesyes])
AM_CONDITIONAL([HAVE_MPICH], [test "$have_mpi$have_mpich" = yesyes])
])

# Any MPI. That mpicc of Intel MPI quotes words, and without I_MPI_ROOT names no
# folder that there is.
AC_DEFUN([DSCOMM_MPI_FLAGS],
[for dscomm_module in mpi-c ompi-c mpich; do
    AS_IF([test -z "$MPI_LIBS"],
        [DSCOMM_FIND_PC([mpi], [MPI], [$dscomm_module])])
done
AS_IF([test -z "$MPI_LIBS"], [
    for dscomm_word in `${dscomm_mpi_dir:+$dscomm_mpi_dir/bin/}mpicc -show 2>/dev/null | $SED 's/"//g'`; do
        AS_CASE([$dscomm_word],
            [-I*|-D*], [MPI_CFLAGS="$MPI_CFLAGS $dscomm_word"],
            [-L*|-l*], [MPI_LIBS="$MPI_LIBS $dscomm_word"])
    done])
])

# What MPI_CFLAGS and MPI_LIBS lead to is that of its family, if it links.
AC_DEFUN([DSCOMM_MPI_TAKE],
[AS_IF([test -n "$MPI_LIBS"], [
    DSCOMM_TRY_LINK([MPI], [@%:@include <mpi.h>],
        [int flag; return MPI_Initialized(&flag);], [
        DSCOMM_MPI_NAME
        AS_CASE([$dscomm_mpi_name],
            [Open*], [have_openmpi=yes
                      OPENMPI_CFLAGS=$MPI_CFLAGS
                      OPENMPI_LIBS=$MPI_LIBS],
            [have_mpich=yes
             MPICH_CFLAGS=$MPI_CFLAGS
             MPICH_LIBS=$MPI_LIBS])
        dscomm_mpi_found="${dscomm_mpi_found:+$dscomm_mpi_found, }$dscomm_mpi_name"])
])])

# Which one it is, from its header.
AC_DEFUN([DSCOMM_MPI_NAME],
[dscomm_mpi_name="an MPI of unknown name"
cat >conftest.c <<'_DSCOMM_EOF'
#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION)
found: Open MPI OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION
#elif defined(MPICH_VERSION)
#undef MPICH
found: MPICH MPICH_VERSION
#endif
_DSCOMM_EOF
dscomm_word=`$CC -E -P $MPI_CFLAGS $CPPFLAGS conftest.c 2>/dev/null |
    $SED -n '/^found: */{s///;s/ *\. */./g;s/"//g;p;}'`
rm -f conftest.c
test -z "$dscomm_word" || dscomm_mpi_name=$dscomm_word
])
