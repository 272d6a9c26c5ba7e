#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The headers for C++: each compiles alone, without a warning; what they compute on
# several ranks; what an exception does; and that they use the whole interface.

. "$abs_top_srcdir/tests/tap.sh"

[ -n "$CXX" ] || skip_all 'no C++ compiler'
headers=$abs_top_srcdir/bindings/cpp/dscomm
# CXX and flags are words on purpose.
# shellcheck disable=SC2086
compile()
{
    $CXX -std=c++17 -Wall -Wextra -Wpedantic -Werror $SANITIZER_FLAGS \
        -I"$abs_top_srcdir/bindings/cpp" -I"$abs_top_srcdir/lib" "$@" 1>&2
}
link()
{
    compile -o "$1" "$2" -L"$abs_top_builddir/lib/.libs" -ldscomm
}
echo 'static_assert(__cplusplus >= 201703L);' >"$scratch/none.cpp"
compile -fsyntax-only "$scratch/none.cpp" 2>/dev/null ||
    skip_all "$CXX compiles no C++17"

LD_LIBRARY_PATH=$abs_top_builddir/lib/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
DSCOMM_TIMEOUT=60
export LD_LIBRARY_PATH DSCOMM_TIMEOUT
unset DSCOMM_BACKEND
cat >"$scratch/probe.cpp" <<'END'
#include <dscomm/version.h>
int main() { return dscomm_version() != DSCOMM_VERSION; }
END
case $SANITIZER_FLAGS in
*fsanitize*)
    link "$scratch/probe" "$scratch/probe.cpp" 2>/dev/null && "$scratch/probe" ||
        skip_all "$CXX has other sanitizers than $CC, with which the library was built"
    ;;
esac

for header in "$headers"/*.hpp; do
    echo "#include <dscomm/${header##*/}>" >"$scratch/alone.cpp"
    compile -Wshadow -Wconversion -fsyntax-only "$scratch/alone.cpp"
    result $? "${header##*/} compiles alone"
done

# Left out: what needs callbacks of the program (hooks, logs, works, stores), devices,
# what `dscomm info` prints, what C++ has itself, and calls that others replace.
left_out='device_.*|hooks?_.*|log|log_set_.*|work_create|store_open_custom|coll_name
.*_info|setting_.*|backend_.*|cpu_features|kernels|version.*
group_(algorithm|attach(ed)?|native_info|number|tuning)|monitored_barrier_late
dtype_.*|op_(applies|name|from_name)|strerror|status_name|.*_attr_init
(probe|recv)_matched|work_received|store_multi_get|env_(candidate|overlay|warning)'
sed -n '/^DSCOMM_[0-9]/,/^}/s/^ *dscomm_\([a-z0-9_]*\);$/\1/p' \
    "$abs_top_srcdir/lib/libdscomm.map" | grep -vxE "$left_out" | sort >"$scratch/wanted"
cat "$headers"/*.hpp | sed 's|//.*||' | grep -oE '\bdscomm_[a-z0-9_]+' |
    grep -vE '_(t|fn)$' | sed 's/^dscomm_//' | sort -u >"$scratch/called"
same "$scratch/called" "$scratch/wanted" 'each function is called, or left out on purpose'

link "$scratch/hello" "$abs_top_srcdir/examples/cpp/hello.cpp" &&
    "$abs_top_builddir/tools/dscomm" run -n 3 "$scratch/hello" | sort >"$scratch/got"
for rank in 0 1 2; do
    echo "rank $rank of 3: the sum of all ranks is 3"
done >"$scratch/wanted"
same "$scratch/got" "$scratch/wanted" 'the example'
sed -n '/^    #include/,/^    }$/s/^    //p' "$abs_top_srcdir/doc/dscomm-cpp.7.rst" \
    >"$scratch/manual.cpp"
link "$scratch/manual" "$scratch/manual.cpp"
is "$("$abs_top_builddir/tools/dscomm" run -n 3 "$scratch/manual" | tr '\n' ,)" \
    '3,3,3,' 'the program of the manual'

# Calls that do not compile, and a word of the compiler's reason
while read -r reason call; do
    printf '%s\n' '#include <dscomm/dscomm.hpp>' \
        'auto f(const dscomm::Group &group, std::vector<int> &a)' "{ return $call; }" \
        >"$scratch/refused.cpp"
    out=$(compile -std=gnu++17 -Wno-pedantic -fsyntax-only "$scratch/refused.cpp" 2>&1) &&
        out='it compiles'
    like "$out" "$reason" "refused: $call"
done <<'END'
live group.start().recv(std::vector<int>(4), 0, 1)
live group.start().all_reduce(std::vector<int>(4), a, DSCOMM_SUM)
live group.start().all_gather_v(a, a, std::vector<std::size_t>(1))
temporary group.register_memory(std::vector<int>(4))
deleted group.new_group({0, 1})
deleted group.all_gather_v(a, a, std::vector<std::size_t>(2), {0, 2})
specialize (group.broadcast(dscomm::Span<__int128>(), 0), a[0])
END

link "$scratch/ranks" "$abs_top_srcdir/tests/bindings/cpp-ranks.cpp"
result $? 'a program compiles' || { tap_done; exit; }
for ranks in 1 3; do
    DSCOMM_BACKEND=shm timeout 100 "$abs_top_builddir/tools/dscomm" run -n $ranks \
        "$scratch/ranks" >"$scratch/out" 2>"$scratch/err"
    status=$?
    grep '^#' "$scratch/out"
    sed 's/^/# /' "$scratch/err"
    sed -n 's/^ok [0-9]* - /1 /p; s/^not ok [0-9]* - /0 /p' "$scratch/out" >"$scratch/checks"
    is "$status 1..$(wc -l <"$scratch/checks")" "0 $(tail -n 1 "$scratch/out")" \
        "$ranks ranks: status, and the number of results"
    while read -r passed name; do
        [ "$passed" = 1 ]
        result $? "$name"
    done <"$scratch/checks"
done

DSCOMM_BACKEND=shm timeout 100 "$abs_top_builddir/tools/dscomm" run -n 3 --survive \
    "$scratch/ranks" throw >"$scratch/out" 2>/dev/null
is "$(sort "$scratch/out" | tr '\n' ',')" '# rank 0 is lost,aborted,aborted,' \
    'an exception of one rank ends the calls of the others'
out=$(DSCOMM_BACKEND=tcp timeout 100 "$abs_top_builddir/tools/dscomm" run -n 2 \
    "$scratch/ranks" close)
is "$? $out" '0 closed' 'a registration is closed once, also if its group has ended'
tap_done
