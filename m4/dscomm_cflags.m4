# SPDX-License-Identifier: BSD-3-Clause
# What is added to every compilation and link. CFLAGS and LDFLAGS belong to the
# user and are never edited.

# DSCOMM_C11: refuses a compiler without what the sources need.
AC_DEFUN([DSCOMM_C11],
[AC_MSG_CHECKING([whether $CC knows C11 atomics])
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <stdatomic.h>
_Static_assert(sizeof(void *) <= sizeof(unsigned long long), "size");
static _Atomic unsigned long long word;
static _Thread_local int mine;
]], [[mine = 1; return (int)atomic_fetch_add(&word, 1) + mine;]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$CC is no C11 compiler; set CC to gcc >= 5 or clang >= 3.9])])
# Processes share them, so no lock of libatomic's can stand for them.
AC_MSG_CHECKING([whether 64-bit atomics need no lock])
AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include <stdatomic.h>
#if ATOMIC_LLONG_LOCK_FREE != 2
#error they do
#endif
]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$CC compiles for processors without 64-bit atomic instructions, by which ranks share memory; choose later ones if yours is one, as by CFLAGS=-march=armv7-a])])
])

# DSCOMM_TRY_FLAG(VARIABLE, FLAG): appends FLAG to VARIABLE if the compiler takes
# it without a word.
AC_DEFUN([DSCOMM_TRY_FLAG],
[dscomm_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -Werror $2"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM], [$1="$$1 $2"])
CFLAGS=$dscomm_save_CFLAGS
])

# DSCOMM_CFLAGS: WARN_CFLAGS, VISIBILITY_CFLAGS, SANITIZER_FLAGS, COVERAGE_FLAGS
# and DEFS_LDFLAGS, with the options that choose them.
AC_DEFUN([DSCOMM_CFLAGS],
[DSCOMM_SANITIZERS
DSCOMM_COVERAGE
AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [treat warnings as errors])],
    [], [enable_werror=no])
AC_MSG_CHECKING([which warnings $CC knows])
for dscomm_flag in -Wall -Wextra -Wshadow -Wstrict-prototypes \
    -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla; do
    DSCOMM_TRY_FLAG([WARN_CFLAGS], [$dscomm_flag])
done
AC_MSG_RESULT([$WARN_CFLAGS])
# It warns of fences, which it does not model; ours are between processes, and so
# out of its sight in any case.
AS_IF([test "$dscomm_sanitizers" = thread],
    [DSCOMM_TRY_FLAG([WARN_CFLAGS], [-Wno-tsan])])
AS_IF([test "$enable_werror" = yes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
DSCOMM_TRY_FLAG([VISIBILITY_CFLAGS], [-fvisibility=hidden])
DSCOMM_DEFS
AC_SUBST([WARN_CFLAGS])
AC_SUBST([VISIBILITY_CFLAGS])
])

AC_DEFUN([DSCOMM_SANITIZERS],
[AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST],
                    [address,undefined or thread])],
    [], [enable_sanitizers=no])
AC_ARG_ENABLE([fuzzers],
    [AS_HELP_STRING([--enable-fuzzers],
                    [for make fuzz, with clang; implies --enable-sanitizers])],
    [], [enable_fuzzers=no])
AS_IF([test "$enable_fuzzers,$enable_sanitizers" = yes,no],
    [enable_sanitizers=yes])
AS_CASE([$enable_sanitizers],
    [no], [dscomm_sanitizers=no],
    [yes], [dscomm_sanitizers=address,undefined],
    [dscomm_sanitizers=$enable_sanitizers])
AS_IF([test "$dscomm_sanitizers" != no], [
    AC_MSG_CHECKING([whether -fsanitize=$dscomm_sanitizers works])
    SANITIZER_FLAGS="-fsanitize=$dscomm_sanitizers -fno-omit-frame-pointer"
    SANITIZER_FLAGS="$SANITIZER_FLAGS -fno-sanitize-recover=all"
    SANITIZER_CFLAGS=$SANITIZER_FLAGS
    DSCOMM_TRY_LINK([SANITIZER], [], [], [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([$CC cannot link with -fsanitize=$dscomm_sanitizers])])])
AS_IF([test "$enable_fuzzers" = yes], [DSCOMM_FUZZERS])
AM_CONDITIONAL([ENABLE_FUZZERS], [test "$enable_fuzzers" = yes])
AC_SUBST([SANITIZER_FLAGS])
])

# Everything is compiled so that a fuzzer sees which branches its input takes.
AC_DEFUN([DSCOMM_FUZZERS],
[AC_MSG_CHECKING([whether -fsanitize=fuzzer works])
dscomm_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -fsanitize=fuzzer"
AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{ return size && data[0] > 255; }]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([--enable-fuzzers needs clang and its libFuzzer; set CC=clang])])
CFLAGS=$dscomm_save_CFLAGS
SANITIZER_FLAGS="$SANITIZER_FLAGS -fsanitize=fuzzer-no-link"
])

AC_DEFUN([DSCOMM_COVERAGE],
[AC_ARG_ENABLE([coverage],
    [AS_HELP_STRING([--enable-coverage], [count executed lines, for make coverage])],
    [], [enable_coverage=no])
AS_IF([test "$enable_coverage" = yes], [COVERAGE_FLAGS=--coverage])
AC_SUBST([COVERAGE_FLAGS])
AM_CONDITIONAL([ENABLE_COVERAGE], [test "$enable_coverage" = yes])
])

# Undefined symbols in a library are errors, except with clang's sanitizers,
# whose runtime is linked to programs only.
AC_DEFUN([DSCOMM_DEFS],
[AC_MSG_CHECKING([whether the linker takes -z defs])
dscomm_save_LDFLAGS=$LDFLAGS
dscomm_save_CFLAGS=$CFLAGS
LDFLAGS="$LDFLAGS -shared -Wl,-z,defs"
CFLAGS="$CFLAGS -fPIC $SANITIZER_FLAGS"
AC_LINK_IFELSE([AC_LANG_SOURCE([[int *dscomm_f(int *x); int *dscomm_f(int *x)
    { x[*x]++; return x; }]])],
    [DEFS_LDFLAGS=-Wl,-z,defs
     AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])])
LDFLAGS=$dscomm_save_LDFLAGS
CFLAGS=$dscomm_save_CFLAGS
AC_SUBST([DEFS_LDFLAGS])
])
