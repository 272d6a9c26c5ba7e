# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_TORCH: the backend of torch.distributed, only if asked for, since it compiles
# for minutes. Sets TORCH_PYTHON and dscomm_torch.
AC_DEFUN([DSCOMM_TORCH],
[AC_ARG_WITH([torch],
    [AS_HELP_STRING([--with-torch=PYTHON],
        [build and test the backend of torch.distributed for this Python @<:@no@:>@])],
    [], [with_torch=no])
AC_SUBST([TORCH_PYTHON])
AS_CASE([$with_torch],
    [no], [TORCH_PYTHON=],
    [yes], [AC_PATH_PROG([TORCH_PYTHON], [python3])
        AS_IF([test -z "$TORCH_PYTHON"],
            [AC_MSG_ERROR([--with-torch: no python3 in PATH; give --with-torch=PYTHON])])],
    [/*], [TORCH_PYTHON=$with_torch],
    [*/*], [TORCH_PYTHON=`pwd`/$with_torch],
    [AC_PATH_PROG([TORCH_PYTHON], [$with_torch], [$with_torch])])
dscomm_torch='no (--with-torch=PYTHON)'
AS_IF([test -n "$TORCH_PYTHON"], [
    AC_MSG_CHECKING([for PyTorch in $TORCH_PYTHON])
    dscomm_version=`"$TORCH_PYTHON" -c 'import torch.distributed, torch
print(torch.__version__)' 2>/dev/null`
    AC_MSG_RESULT([${dscomm_version:-no}])
    AS_IF([test -z "$dscomm_version"],
        [AC_MSG_ERROR([--with-torch=$with_torch: "$TORCH_PYTHON" cannot import torch.distributed])])
    AS_IF(["$TORCH_PYTHON" -c 'import setuptools, pip' 2>/dev/null], [],
        [AC_MSG_ERROR([--with-torch=$with_torch: "$TORCH_PYTHON" has no pip or setuptools])])
    AS_IF([test -n "$SANITIZER_FLAGS"],
        [AC_MSG_ERROR([--with-torch=$with_torch: Python runs without sanitizers; leave out one of both])])
    dscomm_torch="yes (PyTorch $dscomm_version)"
])
AM_CONDITIONAL([HAVE_TORCH], [test -n "$TORCH_PYTHON"])
])
