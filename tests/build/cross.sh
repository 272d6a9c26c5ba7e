#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the libraries, modules and unit tests for the host that CROSS names, and runs the
# unit tests and the conformance suite, on shm and in part on tcp, with 2 and 3 ranks, under
# qemu-user. `make check-cross` runs it; it takes more than an hour. It finds what does not
# compile there, or computes otherwise, on s390x-linux-gnu by the byte order. It does not
# find a barrier that is missing: the emulator keeps the order of memory accesses that the
# host has.
#
# CROSS_ROOT is a folder into which Debian's packages of that architecture were unpacked
# (dpkg -x): libc6, libgcc-s1, libglib2.0-0 (libglib2.0-0t64 from Debian 13 on),
# libglib2.0-dev, libpcre2-8-0 and libpcre2-dev. If it is not set, they must be installed
# (libglib2.0-dev:arm64). What is missing skips the test, or fails it if CROSS_ROOT is set.

. "$abs_top_srcdir/tests/backends/conform.sh"

host=${CROSS:-aarch64-linux-gnu}
root=${CROSS_ROOT-}
build=$scratch/build

# lacks REASON
lacks()
{
    [ -n "$root" ] || skip_all "$1"
    result 1 "$1"
    tap_done
    exit
}

command -v "$host-gcc" >/dev/null || lacks "no $host-gcc"
emulator=$(command -v "qemu-${host%%-*}-static" || command -v "qemu-${host%%-*}") ||
    lacks "no qemu-${host%%-*}"
export PKG_CONFIG_LIBDIR="$root/usr/lib/$host/pkgconfig:$root/usr/share/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR="$root"
export QEMU_LD_PREFIX="${root:-/}"
pkg-config --exists glib-2.0 2>/dev/null ||
    lacks "no GLib for $host below '$root/', see CROSS_ROOT"
# The C library is a program, which prints its version.
"$emulator" "$root/lib/$host/libc.so.6" >/dev/null 2>&1 ||
    lacks "no C library for $host below '$root/', see CROSS_ROOT"

# step NAME COMMAND...
step()
{
    name=$1
    shift
    "$@" >"$scratch/log" 2>&1 </dev/null
    result $? "$name" || { tail -n 40 "$scratch/log" | sed 's/^/# /'; return 1; }
}

configure()
(
    mkdir "$build" && cd "$build" &&
        "$abs_top_srcdir/configure" -q --host="$host" --disable-tools --without-mpi \
            --without-ibverbs --without-cuda --enable-werror CC="$host-gcc" \
            LDFLAGS="-Wl,-rpath-link,$root/usr/lib/$host:$root/lib/$host"
)

# The unit tests that are always built and need no hwloc, and the modules for tests.
targets()
{
    cat "$abs_top_srcdir/tests/Makemodule.am" "$abs_top_srcdir/tests/fuzz/Makemodule.am" |
        awk '/^if / { optional = 1 }
            /^endif/ { optional = 0 }
            optional { next }
            /^check_LTLIBRARIES \+= / { print $3 }
            /^check_PROGRAMS \+= / { program = $3 }
            /HWLOC|libtopology|libplacement/ { hwloc[program] = 1 }
            /^check_PROGRAMS \+= / { programs[program] = 1 }
            END { for (program in programs) if (!(program in hwloc)) print program }' |
        sort
}

units()
{
    targets | grep -E '^tests/(lib|env|compression|profiler|fuzz|backends/(shm|net))/.*\.t$'
}

# Prints why a program cannot be run here, if so.
reason()
{
    case $host:$1 in
    *:tests/env/bind.t) echo 'needs hwloc' ;;
    *:tests/lib/base/cpu.t) echo "qemu shows the other processor's /proc/cpuinfo" ;;
    *:tests/lib/base/kernel.t) echo "qemu's /proc/self/stat has no state" ;;
    *:tests/lib/recorder/recorder.t) echo 'qemu does not block SIGXFSZ' ;;
    *:tests/lib/work/helper.t | *:tests/lib/work/watchdog.t)
        echo 'qemu asserts if a child of threads starts one' ;;
    *:tests/backends/net/faults.t | *:tests/backends/net/flood.t | *:tests/backends/net/lazy.t)
        echo 'its deadlines are too short for an emulator' ;;
    s390x*:tests/lib/base/socket-table.t | s390x*:tests/lib/store/secret.t)
        echo 'qemu shows /proc/net/tcp in the other byte order' ;;
    esac
}

# Prints the arguments with which a program runs, one after the other, if it has more to
# do than an emulator does in one run.
parts()
{
    [ "$1" = tests/lib/schedule/algorithms.t ] || return
    sed -n 's/^ .*{.*"\([a-z_]*\)".*/\1/p' "$abs_top_srcdir/lib/schedule/algorithm.c" | sort -u
}

step 'configure' configure || { tap_done; exit; }
# Split on purpose
# shellcheck disable=SC2046
step 'make' make -C "$build" -j2 all tests/backends/conformance $(units) \
    $(targets | grep '\.la$') || { tap_done; exit; }

export abs_top_builddir="$build" DSCOMM_BACKEND_PATH="$build/backends/.libs"
for program in $(units); do
    why=$(reason "$program")
    [ -z "$why" ] || { skip "$program" "$why"; continue; }
    parts=$(parts "$program")
    for part in ${parts:-''}; do
        step "$program${part:+ $part}" timeout -k 10 900 "$build/libtool" --mode=execute \
            "$emulator" "$build/$program" ${part:+"$part"}
    done
done

# Starts ranks, called as "launcher -n RANKS PROGRAM AREA...". They meet in a file: a store
# that `dscomm run` of this machine serves speaks this machine's byte order.
cat >"$scratch/launcher" <<'EOF'
#!/bin/sh
export DSCOMM_WORLD_SIZE="$2"
DSCOMM_INIT_METHOD=file://$(mktemp -u -p "$(dirname "$0")") || exit
export DSCOMM_INIT_METHOD
shift 2
rank=0 pids='' failed=0
while [ $rank -lt "$DSCOMM_WORLD_SIZE" ]; do
    DSCOMM_RANK=$rank timeout -k 10 900 "$@" &
    pids="$pids $!"
    rank=$((rank + 1))
done
for pid in $pids; do
    wait "$pid" || failed=1
done
exit $failed
EOF
cat >"$scratch/conformance" <<EOF
#!/bin/sh
exec '$build/libtool' --mode=execute '$emulator' '$build/tests/backends/conformance' "\$@"
EOF
chmod +x "$scratch/launcher" "$scratch/conformance"
launch=$scratch/launcher
conformance=$scratch/conformance
# The emulator keeps 24 bytes for each page that was ever mapped: with the heaps that groups
# have by default, 16 GiB, that is 8 GB a rank.
export DSCOMM_SHM_HEAP=1G
for ranks in 2 3; do
    conform shm $ranks
    conform tcp $ranks reductions p2p
done
tap_done
