# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_IBVERBS: libibverbs for backends/net/ibverbs, which needs hwloc too
# (have_hwloc).
# Sets have_ibverbs, dscomm_ibverbs, IBVERBS_CFLAGS, IBVERBS_LIBS.
AC_DEFUN([DSCOMM_IBVERBS],
[DSCOMM_ARG_WITH([ibverbs], [backend on RDMA devices],
    [include/infiniband/verbs.h and lib/libibverbs.so])
AC_ARG_VAR([IBVERBS_CFLAGS], [flags for libibverbs, with IBVERBS_LIBS])
AC_ARG_VAR([IBVERBS_LIBS], [libibverbs, in place of a search])
dscomm_ibverbs_found=
dscomm_ibverbs_why=
AS_IF([test "$with_ibverbs" != no], [
    AC_MSG_CHECKING([for libibverbs])
    dscomm_version=
    AS_IF([test -z "$IBVERBS_LIBS"],
        [DSCOMM_FIND_PC([ibverbs], [IBVERBS], [libibverbs])])
    AS_IF([test -z "$IBVERBS_LIBS"],
        [DSCOMM_FIND_FILES([ibverbs], [IBVERBS], [infiniband/verbs.h], [ibverbs])])
    DSCOMM_TRY_LINK([IBVERBS], [@%:@include <infiniband/verbs.h>],
        [int n; return ibv_get_device_list(&n) == NULL;],
        [dscomm_ibverbs_found="libibverbs${dscomm_version:+ $dscomm_version}"])
    DSCOMM_EXPLAIN([ibverbs], [IBVERBS],
        [neither libibverbs.pc nor include/infiniband/verbs.h and libibverbs])
    AS_IF([test "$have_hwloc" = no],
        [dscomm_ibverbs_found= dscomm_ibverbs_why="hwloc 2.2 or newer is missing"])
    AC_MSG_RESULT([${dscomm_ibverbs_found:-no}])
    AS_IF([test -n "$dscomm_ibverbs_found"], [
        dscomm_saved_libs=$LIBS
        LIBS="$IBVERBS_LIBS $LIBS"
        AC_CHECK_FUNCS([ibv_query_qp_data_in_order ibv_reg_dmabuf_mr])
        LIBS=$dscomm_saved_libs])
])
DSCOMM_DECIDE([ibverbs], [backends/net/ibverbs/ibverbs.c])
AM_CONDITIONAL([HAVE_IBVERBS], [test "$have_ibverbs" = yes])
])
