# SPDX-License-Identifier: BSD-3-Clause
# For --disable-tests: make check builds and runs nothing. Recipes see the first four
# lines; prerequisites, which are read before this file, see the last one.
TESTS =
check_DATA =
check_LTLIBRARIES =
check_PROGRAMS =
AM_MAKEFLAGS = TESTS= check_DATA= check_LTLIBRARIES= check_PROGRAMS=
