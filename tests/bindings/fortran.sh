#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The modules for Fortran: their declarations against the headers, what they compute on
# several ranks, and a failure that ends the program.

. "$abs_top_srcdir/tests/tap.sh"

tests=$abs_top_srcdir/tests/bindings
modules=$abs_top_srcdir/bindings/fortran
case $SANITIZER_FLAGS in
*fsanitize*) skip_all 'Fortran runs without sanitizers' ;;
esac

# Declarations. CC may hold flags.
if command -v python3 >/dev/null; then
    # shellcheck disable=SC2086
    python3 "$tests/fortran-headers.py" "$modules/dscomm_c.f90" >"$scratch/headers.c" &&
        grep -q '_Static_assert(DSCOMM_SUM == 0' "$scratch/headers.c" &&
        grep -q 'call_dscomm_all_reduce(void \* group,' "$scratch/headers.c" &&
        $CC -std=gnu11 -Wall -Wextra -Wconversion -Wsign-conversion -Werror \
            -I"$abs_top_srcdir/lib" -fsyntax-only "$scratch/headers.c" 1>&2
    result $? 'interfaces, structures and constants are those of the headers'
else
    skip 'interfaces, structures and constants' 'no python3'
fi
cd "$abs_top_srcdir/lib/dscomm" || exit 99
{
    sed -n 's/^ *\(DSCOMM_[A-Z0-9_]*\) = [0-9].*/\1/p' types.h failure.h
    sed -n 's/^    X(\([A-Z_]*\), .*/DSCOMM_\1/p' status.h
} | grep -v FORCE_INT | sort >"$scratch/wanted"
sed -n 's/.*parameter :: \(DSCOMM_[A-Z0-9_]*\) = .*/\1/p' "$modules/dscomm_c.f90" | sort \
    >"$scratch/constants"
comm -12 "$scratch/wanted" "$scratch/constants" >"$scratch/got"
same "$scratch/got" "$scratch/wanted" 'each type, operator, status and kind of failure is there'
sed -n 's/^ *DSCOMM_COLL_\([A-Z_]*\) = .*/\1/p' hook.h | tr 'A-Z' 'a-z' | sort >"$scratch/wanted"
sed -n "s/.*name='dscomm_\([a-z_]*\)'.*/\1/p" "$modules/dscomm_c.f90" | sort >"$scratch/names"
comm -12 "$scratch/wanted" "$scratch/names" >"$scratch/got"
same "$scratch/got" "$scratch/wanted" 'each collective is there'
sed -n 's/.*\<c_\([a-z0-9_]*\)(.*) .*bind(c.*/\1/p; s/.*function c_\([a-z0-9_]*\)(.*/\1/p' \
    "$modules/dscomm_c.f90" | sort -u | while read -r name; do
    cat "$modules/dscomm.f90" "$modules/dscomm_arguments.f90" |
        grep -q "\\<c_$name(" || echo "$name"
done >"$scratch/unused"
printf '%s\n' reduce_premul_sum reduce_scatter_premul_sum >"$scratch/wanted"
same "$scratch/unused" "$scratch/wanted" 'each function is called, or left to dscomm_c'

cd "$scratch" || exit 99
fortran=${FC:-gfortran}
if ! command -v "${fortran%% *}" >/dev/null; then
    skip 'compiled programs' "no $fortran"
    tap_done
    exit
fi
# FC may hold flags. Reals are compared where sums are exact.
# shellcheck disable=SC2086
link()
{
    $fortran -std=f2018 -Wall -Wextra -Wno-compare-reals -Werror -fcheck=all -o "$1" \
        "$modules/dscomm_c.f90" "$modules/dscomm_arguments.f90" "$modules/dscomm.f90" \
        "$2" -L"$abs_top_builddir/lib/.libs" -ldscomm 1>&2
}
LD_LIBRARY_PATH=$abs_top_builddir/lib/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
DSCOMM_BACKEND=shm DSCOMM_TIMEOUT=60
export LD_LIBRARY_PATH DSCOMM_BACKEND DSCOMM_TIMEOUT

link hello "$abs_top_srcdir/examples/fortran/hello.f90" &&
    "$abs_top_builddir/tools/dscomm" run -n 3 ./hello | sort >got
for rank in 0 1 2; do
    echo "rank $rank of 3: the sum of all ranks is 3"
done >wanted
same got wanted 'the example'
sed -n '/^    program hello/,/^    end program/s/^    //p' \
    "$abs_top_srcdir/doc/dscomm-fortran.7.rst" >manual.f90
link manual manual.f90
is "$("$abs_top_builddir/tools/dscomm" run -n 3 ./manual | tr -d ' ' | tr '\n' ,)" \
    '3,3,3,' 'the program of the manual'
out=$(DSCOMM_BACKEND=nonsense ./hello 2>&1)
is $? 1 'a failure without ierror ends the program'
like "$out" "no backend 'nonsense'" 'and prints its sentence'

link ranks "$tests/fortran-ranks.f90"
result $? 'a program compiles' || { tap_done; exit; }
for ranks in 1 3; do
    timeout 100 "$abs_top_builddir/tools/dscomm" run -n $ranks ./ranks >out 2>err
    status=$?
    grep '^#' out
    sed 's/^/# /' err
    sed -n 's/^ok [0-9]* - /1 /p; s/^not ok [0-9]* - /0 /p' out >checks
    is "$status 1..$(wc -l <checks)" "0 $(tail -n 1 out)" \
        "$ranks ranks: status, and the number of results"
    while read -r passed name; do
        [ "$passed" = 1 ]
        result $? "$name"
    done <checks
done
tap_done
