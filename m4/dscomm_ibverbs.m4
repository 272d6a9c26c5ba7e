# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_IBVERBS: libibverbs for backends/ibverbs.
# Sets have_ibverbs, dscomm_ibverbs, IBVERBS_CFLAGS, IBVERBS_LIBS.
AC_DEFUN([DSCOMM_IBVERBS],
[DSCOMM_ARG_WITH([ibverbs], [backend on RDMA devices])
dscomm_ibverbs_found=
dscomm_ibverbs_why=
AS_IF([test "$with_ibverbs" != no], [
    AC_MSG_CHECKING([for libibverbs])
    DSCOMM_PKG_CONFIG([ibverbs], [IBVERBS], [libibverbs])
    AS_IF([test -z "$dscomm_pc_version"], [
        IBVERBS_LIBS=-libverbs
        AS_IF([test -n "$dscomm_ibverbs_dir"],
            [IBVERBS_CFLAGS=-I$dscomm_ibverbs_dir/include
             IBVERBS_LIBS="-L$dscomm_ibverbs_dir/lib -libverbs"])])
    DSCOMM_TRY_LINK([IBVERBS], [@%:@include <infiniband/verbs.h>],
        [int n; return ibv_get_device_list(&n) == NULL;],
        [dscomm_ibverbs_found="libibverbs $dscomm_pc_version"],
        [dscomm_ibverbs_why="infiniband/verbs.h or -libverbs not found"])
    AC_MSG_RESULT([${dscomm_ibverbs_found:-no}])
])
DSCOMM_DECIDE([ibverbs], [backends/ibverbs/ibverbs.c])
AC_SUBST([IBVERBS_CFLAGS])
AC_SUBST([IBVERBS_LIBS])
AM_CONDITIONAL([HAVE_IBVERBS], [test "$have_ibverbs" = yes])
])
