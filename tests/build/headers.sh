#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each public header compiles alone, as C99 and as C++11.

. "$abs_top_srcdir/tests/tap.sh"

# compiles HEADER COMPILER [FLAG...]
compiles()
{
    header=$1
    shift
    echo "#include <dscomm/$header>" |
        "$@" -Wall -Wextra -pedantic -Werror -I"$abs_top_srcdir/lib" \
            -I"$abs_top_srcdir/compression" -I"$abs_top_srcdir/profiler" \
            -I"$abs_top_srcdir/backends/net" -fsyntax-only - 1>&2
}

for path in "$abs_top_srcdir"/lib/dscomm/*.h \
    "$abs_top_srcdir"/compression/dscomm/*.h "$abs_top_srcdir"/profiler/dscomm/*.h \
    "$abs_top_srcdir"/backends/net/dscomm/*.h; do
    header=${path##*/}
    # CC and CXX may hold flags.
    # shellcheck disable=SC2086
    compiles "$header" $CC -x c -std=c99
    result $? "$header is C99"
    if [ -n "$CXX" ]; then
        # shellcheck disable=SC2086
        compiles "$header" $CXX -x c++ -std=c++11
        result $? "$header is C++11"
    else
        skip "$header is C++11" 'no C++ compiler'
    fi
    ! grep -n 'typedef struct {' "$path" 1>&2
    result $? "$header: each struct has a tag, to be declared by others"
done
tap_done
