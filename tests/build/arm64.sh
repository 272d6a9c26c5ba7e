#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the library and backend shm for 64-bit ARM, and runs the tests of shm and the
# conformance suite with 2 and 3 ranks under qemu-user. `make check-arm64` runs it; it
# takes some ten minutes. It finds what does not compile there, or computes otherwise. It
# does not find a barrier that is missing: the emulator keeps the order of memory accesses
# that the host has.
#
# ARM64_ROOT is a folder into which Debian's arm64 packages were unpacked (dpkg -x):
# libc6, libgcc-s1, libglib2.0-0, libglib2.0-dev, libpcre2-8-0 and libpcre2-dev. If it is
# not set, they must be installed (libglib2.0-dev:arm64).

. "$abs_top_srcdir/tests/backends/conform.sh"

host=aarch64-linux-gnu
root=${ARM64_ROOT-}
build=$scratch/build
command -v $host-gcc >/dev/null || skip_all "no $host-gcc"
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64) ||
    skip_all 'no qemu-aarch64'
export PKG_CONFIG_LIBDIR="$root/usr/lib/$host/pkgconfig:$root/usr/share/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR="$root"
pkg-config --exists glib-2.0 2>/dev/null ||
    skip_all "no GLib for $host below '$root/', see ARM64_ROOT"
[ -e "$root/lib/ld-linux-aarch64.so.1" ] ||
    skip_all "no C library for $host below '$root/', see ARM64_ROOT"
export QEMU_LD_PREFIX="${root:-/}"

# step NAME COMMAND...
step()
{
    name=$1
    shift
    "$@" >"$scratch/log" 2>&1
    result $? "$name" || { tail -n 40 "$scratch/log" | sed 's/^/# /'; return 1; }
}

configure()
(
    mkdir "$build" && cd "$build" &&
        "$abs_top_srcdir/configure" -q --host=$host --disable-tools --without-mpi \
            --without-ibverbs --without-cuda --enable-werror CC=$host-gcc \
            LDFLAGS="-Wl,-rpath-link,$root/usr/lib/$host:$root/lib/$host"
)

units=$(cd "$abs_top_srcdir" && ls tests/backends/shm/*.c)
programs=$(for unit in $units; do echo "${unit%.c}.t"; done)
step 'configure' configure || { tap_done; exit; }
# Split on purpose
# shellcheck disable=SC2086
step 'make' make -C "$build" -j2 lib/libdscomm.la backends/shm.la \
    tests/backends/conformance $programs || { tap_done; exit; }

for program in $programs; do
    step "$program" timeout 120 "$emulator" "$build/$program"
done

# The launcher is this machine's: it makes the guard by a call that qemu does not know.
cat >"$scratch/conformance" <<EOF
#!/bin/sh
export DSCOMM_BACKEND_PATH='$build/backends/.libs'
exec '$build/libtool' --mode=execute '$emulator' '$build/tests/backends/conformance' "\$@"
EOF
chmod +x "$scratch/conformance"
conformance=$scratch/conformance
conform shm 2
conform shm 3
tap_done
