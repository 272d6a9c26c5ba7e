#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The Python package: its declarations against the headers, what it computes, and how it
# fails. Needs a Python that has NumPy: DSCOMM_TEST_PYTHON, python3 or the system's.

. "$abs_top_srcdir/tests/tap.sh"

tests=$abs_top_srcdir/tests/bindings
package=$abs_top_srcdir/bindings/python
case $SANITIZER_FLAGS in
*fsanitize*) skip_all 'Python runs without sanitizers' ;;
esac
for python in "$TEST_PYTHON" python3 /usr/bin/python3 none; do
    [ "$python" ] || continue
    "$python" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 9))' \
        >/dev/null 2>&1 && break
done
[ "$python" != none ] || skip_all 'no Python has NumPy; set DSCOMM_TEST_PYTHON'
LD_LIBRARY_PATH=$abs_top_builddir/lib/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1
export LD_LIBRARY_PATH PYTHONPATH PYTHONDONTWRITEBYTECODE
unset DSCOMM_BACKEND LIBDSCOMM PYTHONOPTIMIZE PYTHONUNBUFFERED

# Declarations. CC may hold flags.
# shellcheck disable=SC2086
"$python" "$tests/python-headers.py" >"$scratch/headers.c" &&
    $CC -std=gnu11 -Wall -Wextra -Werror -I"$abs_top_srcdir/lib" -fsyntax-only \
        "$scratch/headers.c" 1>&2
result $? 'prototypes, structures and constants are those of the headers'
"$python" "$tests/python-headers.py" names | sort >"$scratch/called"
while read -r name; do
    cat "$package"/dscomm/[!_]*.py "$package"/dscomm/_[!p]*.py | grep -qw "$name" ||
        echo "$name"
done <"$scratch/called" >"$scratch/unused"
same "$scratch/unused" /dev/null 'each function that is declared is called'

# Left out: what needs callbacks (hooks, logs, operators, works, stores), devices, what
# `dscomm info` prints, what Python has itself, and calls that others replace.
left_out='device_.*|hooks?_.*|log|log_set_handler|op_.*|work_create|store_open_custom
.*_info|setting_.*|backend_.*|cpu_features|kernels
group_(algorithm|native_info|tuning)|monitored_barrier
dtype_.*|strerror|status_name|fail|.*_attr_init|group_attach(ed)?|group_set_stream
send|recv|recv_within|probe_matched|recv_matched|work_(group|sequence|received|wait_all)
env_(candidate|check_master|export|origin|overlay|status)|version'
sed -n '/^DSCOMM_[0-9]/,/^}/s/^ *dscomm_\([a-z0-9_]*\);$/\1/p' \
    "$abs_top_srcdir/lib/libdscomm.map" | grep -vxE "$left_out" |
    sed 's/^/dscomm_/' | sort >"$scratch/wanted"
same "$scratch/called" "$scratch/wanted" 'each function is called, or left out on purpose'

is "$("$python" -c 'import dscomm; print(dscomm.__version__, dscomm.version())')" \
    "$PACKAGE_VERSION $PACKAGE_VERSION" 'versions of the package and of the library'
[ -e "$abs_top_builddir/lib/.libs/$("$python" -c \
    'import dscomm._library as library; print(library.SONAME)')" ]
result $? 'the soname is that of the library'
LIBDSCOMM=/nowhere.so "$python" -c 'import dscomm' 2>&1 |
    grep -q 'ImportError.*/nowhere.so.*LD_LIBRARY_PATH'
result $? 'a library that is missing is an ImportError that says what to set'
"$python" -c 'import array, sys; sys.modules["numpy"] = None
import dscomm
with dscomm.init() as world:
    values = array.array("d", [1, 2])
    world.all_reduce(values)
    assert values.tolist() == [1, 2]' 1>&2
result $? 'it works without NumPy'
"$abs_top_builddir/tools/dscomm" run -n 3 "$python" \
    "$abs_top_srcdir/examples/python/hello.py" | sort >"$scratch/hello"
for rank in 0 1 2; do
    echo "rank $rank of 3: the sum of all ranks is 3"
done >"$scratch/wanted"
same "$scratch/hello" "$scratch/wanted" 'the example'
if "$python" -m mypy --version >/dev/null 2>&1; then
    "$python" -m mypy --strict --cache-dir "$scratch/mypy" "$package/dscomm" |
        sed 's/^/# /' >"$scratch/types"
    grep -q '^# Success' "$scratch/types"
    result $? 'types' || cat "$scratch/types"
else
    skip 'types' "$python has no mypy"
fi

for ranks in 1 2 3 4; do
    timeout 100 "$abs_top_builddir/tools/dscomm" run -n $ranks "$python" \
        "$tests/python-ranks.py" >"$scratch/out" 2>"$scratch/err"
    status=$?
    sed -n 's/^ok [0-9]* - /1 /p; s/^not ok [0-9]* - /0 /p' "$scratch/out" >"$scratch/checks"
    [ $status = 0 ] && [ -s "$scratch/checks" ] && ! [ -s "$scratch/err" ]
    result $? "$ranks ranks: status" || tail -n 40 "$scratch/err" | sed 's/^/# /'
    while read -r passed name; do
        [ "$passed" = 1 ]
        result $? "$name"
    done <"$scratch/checks"
done

"$python" "$tests/python-failures.py" >"$scratch/out" 2>&1 &&
    grep -q '^ok' "$scratch/out"
result $? 'failures: status' || sed 's/^/# /' "$scratch/out"
grep '^#' "$scratch/out"
sed -n 's/^ok [0-9]* - /1 /p; s/^not ok [0-9]* - /0 /p' "$scratch/out" >"$scratch/checks"
while read -r passed name; do
    [ "$passed" = 1 ]
    result $? "$name"
done <"$scratch/checks"
tap_done
