#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each public header compiles alone, as C99 and as C++11.

folder=$abs_top_srcdir/lib
n=0

# verdict STATUS TEXT
verdict()
{
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

# compiles COMPILER FLAGS HEADER
compiles()
{
    echo "#include <dscomm/$3>" |
        $1 $2 -Wall -Wextra -pedantic -Werror -I"$folder" -fsyntax-only - 1>&2
}

for path in "$folder"/dscomm/*.h; do
    header=${path##*/}
    compiles "$CC" '-x c -std=c99' "$header"
    verdict $? "$header is C99"
    if [ -n "$CXX" ]; then
        compiles "$CXX" '-x c++ -std=c++11' "$header"
        verdict $? "$header is C++11"
    else
        n=$((n + 1))
        echo "ok $n - $header is C++11 # SKIP no C++ compiler"
    fi
done
echo "1..$n"
