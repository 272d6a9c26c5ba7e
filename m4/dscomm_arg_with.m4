# SPDX-License-Identifier: BSD-3-Clause
# One rule for everything that may or may not be there.
#
# DSCOMM_ARG_WITH(NAME, WHAT, HOLDS)
# Adds --with-NAME=auto|yes|no|DIR. Sets with_NAME to auto, yes or no, and
# dscomm_NAME_dir to DIR or nothing; HOLDS tells users what DIR is to hold. auto
# may lose, silently but for the summary; yes and DIR must win; no leaves no
# trace.
AC_DEFUN([DSCOMM_ARG_WITH],
[AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1=auto|yes|no|DIR], [$2 @<:@auto@:>@])],
    [], [with_$1=auto])
dscomm_$1_option=--with-$1=$with_$1
dscomm_$1_dir=
AS_CASE([$with_$1],
    [auto|yes|no], [],
    [/*], [AS_IF([test ! -d "$with_$1"],
                 [AC_MSG_ERROR([$dscomm_$1_option: no such folder; it is to hold $3])])
           dscomm_$1_dir=$with_$1
           with_$1=yes],
    [AC_MSG_ERROR([$dscomm_$1_option: give auto, yes, no or an absolute path])])
])

# DSCOMM_DECIDE(NAME, SOURCE)
# Ends the search: dscomm_NAME_found says what was found, or nothing, and then
# dscomm_NAME_why says why. Sets have_NAME and dscomm_NAME, the text for the
# summary. SOURCE is a file without which there is nothing to build.
AC_DEFUN([DSCOMM_DECIDE],
[have_$1=no
test -z "$dscomm_$1_dir" || test -z "$dscomm_$1_found" ||
    dscomm_$1_found="$dscomm_$1_found in $dscomm_$1_dir"
AS_IF([test "$with_$1" = no], [dscomm_$1_why=--with-$1=no],
      [test -z "$dscomm_$1_found"], [],
      [test ! -f "$srcdir/$2"],
          [dscomm_$1_why="found $dscomm_$1_found; module not in this release"],
      [have_$1=yes])
AS_IF([test "$have_$1" = yes], [dscomm_$1="yes ($dscomm_$1_found)"],
      [test "$with_$1" = yes],
          [AC_MSG_ERROR([$dscomm_$1_option: $dscomm_$1_why])],
      [dscomm_$1="no ($dscomm_$1_why)"])
])
