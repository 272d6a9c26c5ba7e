# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_HWLOC: hwloc, which tells the topology of machines to the program dscomm
# (enable_tools), for DSCOMM_BIND and to backend ibverbs.
# Sets have_hwloc, dscomm_hwloc, HWLOC_CFLAGS, HWLOC_LIBS.
AC_DEFUN([DSCOMM_HWLOC],
[DSCOMM_ARG_WITH([hwloc], [topology of machines], [lib/pkgconfig/hwloc.pc])
AC_ARG_VAR([HWLOC_CFLAGS], [flags for hwloc, with HWLOC_LIBS])
AC_ARG_VAR([HWLOC_LIBS], [hwloc, in place of a search])
dscomm_hwloc_found=
dscomm_hwloc_why=
AS_IF([test "$with_hwloc" != no], [
    AC_MSG_CHECKING([for hwloc])
    dscomm_version=
    AS_IF([test -z "$HWLOC_LIBS"],
        [DSCOMM_FIND_PC([hwloc], [HWLOC], [hwloc])])
    AS_IF([test -n "$dscomm_version"],
        [AS_VERSION_COMPARE([$dscomm_version], [2.2], [HWLOC_LIBS=])])
    DSCOMM_TRY_LINK([HWLOC], [@%:@include <hwloc.h>],
        [hwloc_topology_t topology; return hwloc_topology_init(&topology);],
        [dscomm_hwloc_found="hwloc${dscomm_version:+ $dscomm_version}"])
    DSCOMM_EXPLAIN([hwloc], [HWLOC], [no hwloc.pc of 2.2 or newer])
    AC_MSG_RESULT([${dscomm_hwloc_found:-no}])
])
DSCOMM_DECIDE([hwloc], [env/topology.c])
AM_CONDITIONAL([HAVE_HWLOC], [test "$have_hwloc" = yes])
AS_IF([test "$enable_tools,$have_hwloc" = yes,no],
    [AC_MSG_ERROR([hwloc 2.2 or newer is missing ($dscomm_hwloc_why; Debian: libhwloc-dev); the program dscomm needs it, --disable-tools leaves that out])])
])
