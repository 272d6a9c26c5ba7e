#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The first program in C, C++, Fortran and Rust, by make, CMake, Meson and cargo, in a copy
# of the examples: each finds by pkg-config the dscomm that is installed, and the program
# runs. The flags of pkg-config are enough, also those for static linking.

. "$abs_top_srcdir/tests/tap.sh"

root=$scratch/root
unset DSCOMM_BACKEND_PATH DSCOMM_BACKEND MAKEFLAGS MFLAGS MAKELEVEL
"$MAKE" -C "$abs_top_builddir" install DESTDIR="$root" >"$scratch/log" 2>&1
result $? 'make install' || { sed 's/^/# /' "$scratch/log"; tap_done; exit; }
cp -R "$abs_top_srcdir/examples" "$scratch" && chmod -R u+w "$scratch/examples" &&
    cd "$scratch/examples/build" || exit 99

DSCOMM_BACKEND_PATH=$root$backenddir
PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$root$libdir/pkgconfig
PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
LD_LIBRARY_PATH=$root$libdir
CFLAGS="-O2 $SANITIZER_FLAGS" LDFLAGS=$SANITIZER_FLAGS
export DSCOMM_BACKEND_PATH PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH CFLAGS LDFLAGS \
    PKG_CONFIG_ALLOW_SYSTEM_CFLAGS PKG_CONFIG_ALLOW_SYSTEM_LIBS LD_LIBRARY_PATH
for rank in 0 1 2; do
    echo "rank $rank of 3: the sum of all ranks is 3"
done >"$scratch/wanted"

# runs PROGRAM TEXT
runs()
{
    timeout -k 5 60 "$abs_top_builddir/tools/dscomm" run -n 3 "$1" 2>&1 | sort \
        >"$scratch/got"
    same "$scratch/got" "$scratch/wanted" "$2: the program runs"
}

# builds TEXT COMMAND...
builds()
{
    text=$1
    shift
    "$@" >"$scratch/log" 2>&1
    result $? "$text" || { sed 's/^/# /' "$scratch/log"; return 1; }
}

# have TEXT COMMAND...: skips TEXT if one is missing
have()
{
    text=$1
    shift
    for command; do
        command -v "$command" >/dev/null && continue
        skip "$text" "no $command"
        return 1
    done
}

# Flags are words on purpose.
# shellcheck disable=SC2046,SC2086
for static in '' ' --static'; do
    builds "pkg-config$static" $CC $CFLAGS -o "$scratch/hello" ../hello/hello.c \
        $("$PKG_CONFIG" --cflags --libs $static dscomm) &&
        runs "$scratch/hello" "pkg-config$static"
done

if have CMake cmake; then
    builds 'CMake: configure' cmake -S cmake -B cmake/build &&
        builds 'CMake: build' cmake --build cmake/build &&
        runs cmake/build/hello CMake
fi

if have Meson meson ninja; then
    builds 'Meson: setup' meson setup meson/build meson &&
        builds 'Meson: compile' ninja -C meson/build &&
        runs meson/build/hello Meson
fi

case $SANITIZER_FLAGS in
*fsanitize*) skip 'C++, Fortran and cargo' 'they run without sanitizers' ;;
*)
    if [ -n "$CXX" ]; then
        builds 'C++' "$MAKE" -C .. PKG_CONFIG="$PKG_CONFIG" CXX="$CXX" cpp/hello &&
            runs ../cpp/hello 'C++'
    else
        skip 'C++' 'no C++ compiler'
    fi
    dir=$root$fortrandir
    have Fortran gfortran &&
        builds 'Fortran' gfortran -o ../fortran/hello "$dir/dscomm_c.f90" \
            "$dir/dscomm_arguments.f90" "$dir/dscomm.f90" ../fortran/hello.f90 \
            $("$PKG_CONFIG" --libs dscomm) &&
        runs ../fortran/hello Fortran
    have cargo cargo bindgen &&
        builds 'cargo: build' env CARGO_HOME="$scratch/cargo" CARGO_NET_OFFLINE=true \
            CARGO_TARGET_DIR="$PWD/rust/target" \
            cargo build -q --manifest-path rust/Cargo.toml &&
        runs rust/target/debug/hello cargo
    ;;
esac
tap_done
