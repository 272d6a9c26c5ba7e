# SPDX-License-Identifier: BSD-3-Clause
# Where a library of others is: by pkg-config, or by its header and its name; in
# the folder that the user gave and nowhere else, or where everybody looks.
#
# Each search sets VARIABLE_CFLAGS and VARIABLE_LIBS, or leaves VARIABLE_LIBS
# empty. NAME is that of DSCOMM_ARG_WITH.

# DSCOMM_LIB_FOLDERS: those below a prefix, best first.
AC_DEFUN([DSCOMM_LIB_FOLDERS],
[AC_REQUIRE([AC_CANONICAL_HOST])
dscomm_lib_folders="lib64 lib lib/$host_cpu-linux-gnu lib/$host_cpu-linux"
])

# DSCOMM_FIND_PC(NAME, VARIABLE, MODULE)
# Asks pkg-config. Sets dscomm_version too.
AC_DEFUN([DSCOMM_FIND_PC],
[AC_REQUIRE([PKG_PROG_PKG_CONFIG])
AC_REQUIRE([DSCOMM_LIB_FOLDERS])
dscomm_pc=$3
dscomm_pc_path=$PKG_CONFIG_PATH
AS_IF([test -n "$dscomm_$1_dir"], [
    dscomm_pc=
    for dscomm_folder in $dscomm_lib_folders share; do
        dscomm_folder=$dscomm_$1_dir/$dscomm_folder/pkgconfig
        AS_IF([test -f "$dscomm_folder/$3.pc"],
            [dscomm_pc=$dscomm_folder/$3.pc
             dscomm_pc_path=$dscomm_folder:$dscomm_pc_path
             break])
    done])
AS_IF([test -n "$dscomm_pc" &&
       PKG_CONFIG_PATH=$dscomm_pc_path $PKG_CONFIG --exists "$dscomm_pc" \
           >&AS_MESSAGE_LOG_FD 2>&1],
    [PKG_CONFIG_PATH=$dscomm_pc_path; export PKG_CONFIG_PATH
     dscomm_version=`$PKG_CONFIG --modversion "$dscomm_pc"`
     $2_CFLAGS=`$PKG_CONFIG --cflags "$dscomm_pc"`
     $2_LIBS=`$PKG_CONFIG --libs "$dscomm_pc"`])
])

# DSCOMM_FIND_FILES(NAME, VARIABLE, HEADER, LIBRARY)
# Takes dscomm_NAME_dir/include and the folder with libLIBRARY beside it, or what
# the compiler finds by itself.
AC_DEFUN([DSCOMM_FIND_FILES],
[AC_REQUIRE([DSCOMM_LIB_FOLDERS])
AS_IF([test -z "$dscomm_$1_dir"],
    [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([@%:@include <$3>])], [$2_LIBS=-l$4])],
    [test -f "$dscomm_$1_dir/include/$3"], [
    for dscomm_folder in $dscomm_lib_folders; do
        dscomm_folder=$dscomm_$1_dir/$dscomm_folder
        AS_IF([test -f "$dscomm_folder/lib$4.so" ||
               test -f "$dscomm_folder/lib$4.a"],
            [$2_CFLAGS=-I$dscomm_$1_dir/include
             $2_LIBS="-L$dscomm_folder -l$4"
             break])
    done])
])

# DSCOMM_EXPLAIN(NAME, VARIABLE, WHAT)
# Sets dscomm_NAME_why where dscomm_NAME_found is empty. WHAT was looked for.
AC_DEFUN([DSCOMM_EXPLAIN],
[AS_IF([test -n "$dscomm_$1_found"], [],
       [test -n "$$2_LIBS"],
           [dscomm_$1_why="no program links with $$2_CFLAGS $$2_LIBS, see config.log"],
       [test -n "$dscomm_$1_dir"], [dscomm_$1_why="$3 in $dscomm_$1_dir"],
       [dscomm_$1_why="$3 found"])
])

# DSCOMM_TRY_LINK(VARIABLE, PROLOGUE, BODY, [IF-YES], [IF-NO])
# Links a C program with VARIABLE_CFLAGS and VARIABLE_LIBS.
AC_DEFUN([DSCOMM_TRY_LINK],
[dscomm_save_CPPFLAGS=$CPPFLAGS
dscomm_save_LIBS=$LIBS
CPPFLAGS="$$1_CFLAGS $CPPFLAGS"
LIBS="$$1_LIBS $LIBS"
AC_LINK_IFELSE([AC_LANG_PROGRAM([$2], [$3])],
    [dscomm_linked=yes], [dscomm_linked=no])
CPPFLAGS=$dscomm_save_CPPFLAGS
LIBS=$dscomm_save_LIBS
AS_IF([test "$dscomm_linked" = yes], [$4], [$5])
])
