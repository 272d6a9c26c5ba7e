# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_MANUAL: a release has its pages made; a clone needs rst2man. Without
# either, or with --disable-manual, everything but the manual is built.
AC_DEFUN([DSCOMM_MANUAL],
[AC_ARG_ENABLE([manual], [AS_HELP_STRING([--disable-manual], [no manual pages])],
    [], [enable_manual=yes])
dscomm_manual=yes
AS_IF([test "$enable_manual" = no], [dscomm_manual=no],
      [rst2man --version >/dev/null 2>&1], [],
      [test -f "$srcdir/doc/dscomm.7"], [],
      [dscomm_manual="no (rst2man of docutils not found)"])
AM_CONDITIONAL([HAVE_MANUAL], [test "$dscomm_manual" = yes])
])
