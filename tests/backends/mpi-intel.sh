#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Backend mpi on Intel MPI, for which the module of MPICH is compiled here; in
# $I_MPI_ROOT, or /opt/intel-mpi, where "pip install impi-rt impi-devel" in a
# virtual environment puts it.

. "$abs_top_srcdir/tests/backends/mpi.sh"

I_MPI_ROOT=${I_MPI_ROOT:-/opt/intel-mpi}
hydra=$I_MPI_ROOT/bin/mpiexec.hydra
if [ ! -x "$hydra" ] || [ ! -e "$I_MPI_ROOT/include/mpi.h" ]; then
    skip_all "no Intel MPI in $I_MPI_ROOT"
fi
case $SANITIZER_FLAGS in
*-fsanitize*) skip_all 'not compiled with sanitizers' ;;
esac

# compile OUTPUT OPTION...: with what the tree is compiled with, as far as needed
compile()
{
    output=$1
    shift
    # The compiler is a command with arguments.
    # shellcheck disable=SC2046,SC2086
    $CC -std=gnu11 -O1 -I"$abs_top_builddir" -I"$abs_top_srcdir" \
        -I"$abs_top_srcdir/lib" -I"$I_MPI_ROOT/include" \
        $($PKG_CONFIG --cflags glib-2.0) "$@" -L"$I_MPI_ROOT/lib" -lmpi \
        -L"$abs_top_builddir/lib/.libs" -ldscomm \
        $($PKG_CONFIG --libs glib-2.0) -o "$scratch/$output" \
        -Wl,-rpath,"$I_MPI_ROOT/lib:$abs_top_builddir/lib/.libs"
}

sources=
for source in "$abs_top_srcdir"/backends/mpi/*.c; do
    [ "${source##*/}" = mpi.c ] || sources="$sources $source"
done
# shellcheck disable=SC2086
compile mpich.so -shared -fPIC $sources &&
    compile host "$abs_top_srcdir/tests/backends/mpi-host.c" \
        "$abs_top_srcdir/tests/backends/mpi-calls.c" \
        "$abs_top_srcdir/tests/backends/mpi-groups.c"
result $? 'the module is compiled for Intel MPI' || exit 1

DSCOMM_MPI_PATH=$scratch
LD_LIBRARY_PATH=$I_MPI_ROOT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
FI_TCP_IFACE=lo
I_MPI_PIN=0
export I_MPI_ROOT DSCOMM_MPI_PATH LD_LIBRARY_PATH FI_TCP_IFACE I_MPI_PIN
launch="timeout -k 5 200 $hydra"
host=$scratch/host
test_host
for n in 2 3; do
    conform mpi $n
done
tap_done
