# SPDX-License-Identifier: BSD-3-Clause
# One rule for everything that may or may not be there.
#
# DSCOMM_ARG_WITH(NAME, WHAT)
# Adds --with-NAME=auto|yes|no|DIR. Sets with_NAME to auto, yes or no, and
# dscomm_NAME_dir to DIR or nothing. auto may lose, silently but for the
# summary; yes and DIR must win; no leaves no trace.
AC_DEFUN([DSCOMM_ARG_WITH],
[AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1=auto|yes|no|DIR], [$2 @<:@auto@:>@])],
    [], [with_$1=auto])
dscomm_$1_dir=
AS_CASE([$with_$1],
    [auto|yes|no], [],
    [/*], [AS_IF([test ! -d "$with_$1"],
                 [AC_MSG_ERROR([--with-$1=$with_$1: there is no such folder])])
           dscomm_$1_dir=$with_$1
           with_$1=yes],
    [AC_MSG_ERROR([--with-$1=$with_$1: give auto, yes, no or an absolute path])])
])

# DSCOMM_DECIDE(NAME, SOURCE)
# Ends the search: dscomm_NAME_found says what was found, or nothing, and then
# dscomm_NAME_why says why. Sets have_NAME and dscomm_NAME, the text for the
# summary. SOURCE is a file without which there is nothing to build.
AC_DEFUN([DSCOMM_DECIDE],
[have_$1=no
AS_IF([test "$with_$1" = no],
          [dscomm_$1_why="--with-$1=no"],
      [test -z "$dscomm_$1_found"], [],
      [test ! -f "$srcdir/$2"],
          [dscomm_$1_why="found $dscomm_$1_found; module not in this release"],
      [have_$1=yes])
AS_IF([test "$have_$1" = yes], [dscomm_$1="yes ($dscomm_$1_found)"],
      [test "$with_$1" = yes],
          [AC_MSG_ERROR([--with-$1 was asked for, but: $dscomm_$1_why])],
      [dscomm_$1="no ($dscomm_$1_why)"])
])

# DSCOMM_PKG_CONFIG(NAME, VARIABLE, MODULE)
# As PKG_CHECK_EXISTS and two queries; looks in dscomm_NAME_dir first. Sets
# VARIABLE_CFLAGS, VARIABLE_LIBS and dscomm_pc_version, or nothing.
AC_DEFUN([DSCOMM_PKG_CONFIG],
[AC_REQUIRE([PKG_PROG_PKG_CONFIG])
dscomm_pc_version=
dscomm_pc_save=$PKG_CONFIG_PATH
AS_IF([test -n "$dscomm_$1_dir"],
    [PKG_CONFIG_PATH=$dscomm_$1_dir/lib/pkgconfig:$dscomm_$1_dir/lib64/pkgconfig
     PKG_CONFIG_LIBDIR_save=${PKG_CONFIG_LIBDIR-unset}
     PKG_CONFIG_LIBDIR=$PKG_CONFIG_PATH
     export PKG_CONFIG_LIBDIR])
export PKG_CONFIG_PATH
AS_IF([$PKG_CONFIG --exists $3 2>/dev/null],
    [dscomm_pc_version=`$PKG_CONFIG --modversion $3`
     $2_CFLAGS=`$PKG_CONFIG --cflags $3`
     $2_LIBS=`$PKG_CONFIG --libs $3`])
AS_IF([test -n "$dscomm_$1_dir"],
    [AS_IF([test "$PKG_CONFIG_LIBDIR_save" = unset],
           [AS_UNSET([PKG_CONFIG_LIBDIR])],
           [PKG_CONFIG_LIBDIR=$PKG_CONFIG_LIBDIR_save])])
PKG_CONFIG_PATH=$dscomm_pc_save
])

# DSCOMM_TRY_LINK(VARIABLE, PROLOGUE, BODY, [IF-YES], [IF-NO])
# Links a C program with VARIABLE_CFLAGS and VARIABLE_LIBS.
AC_DEFUN([DSCOMM_TRY_LINK],
[dscomm_save_CPPFLAGS=$CPPFLAGS
dscomm_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $$1_CFLAGS"
LIBS="$$1_LIBS $LIBS"
AC_LINK_IFELSE([AC_LANG_PROGRAM([$2], [$3])],
    [dscomm_linked=yes], [dscomm_linked=no])
CPPFLAGS=$dscomm_save_CPPFLAGS
LIBS=$dscomm_save_LIBS
AS_IF([test "$dscomm_linked" = yes], [$4], [$5])
])
