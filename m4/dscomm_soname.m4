# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_SONAME(LIBRARY, VARIABLE)
# Sets dscomm_VARIABLE_folder to the name of the folder of LIBRARY's modules,
# "dscomm-0" for libdscomm.so.0, and defines VARIABLE_MODULE_FOLDER as that. The
# number follows from VARIABLE_VERSION_INFO, current:revision:age.
AC_DEFUN([DSCOMM_SONAME],
[dscomm_word=$$2_VERSION_INFO
dscomm_$2_folder=`echo "$1" | $SED 's/^lib//'`-`expr ${dscomm_word%%:*} - ${dscomm_word##*:} || :`
AC_DEFINE_UNQUOTED([$2_MODULE_FOLDER], ["$dscomm_$2_folder"],
    [Folder of the modules of $1, beside it])
])
