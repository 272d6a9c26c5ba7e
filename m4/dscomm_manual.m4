# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_MANUAL: a release has its pages made; a clone needs rst2man. Without
# either, everything but the manual is built.
AC_DEFUN([DSCOMM_MANUAL],
[dscomm_manual=yes
AS_IF([rst2man --version >/dev/null 2>&1], [],
      [test -f "$srcdir/doc/dscomm.7"], [],
      [dscomm_manual="no (rst2man of docutils not found)"])
AM_CONDITIONAL([HAVE_MANUAL], [test "$dscomm_manual" = yes])
])
