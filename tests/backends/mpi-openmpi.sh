#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Backend mpi on Open MPI: programs that use MPI as well, and jobs that are not
# wired up.

. "$abs_top_srcdir/tests/backends/mpi.sh"

use_openmpi
test_host
content 3 quit-beginning 'no rank ends while it connects to mpirun'

# Debian's mpi4py is on Open MPI.
python=
reason='no mpi4py (package python3-mpi4py)'
candidates='python3 /usr/bin/python3'
case $SANITIZER_FLAGS in
*-fsanitize*)
    reason='Python cannot load a library with sanitizers'
    candidates=
    ;;
esac
for candidate in $candidates; do
    [ -n "$python" ] || ! $candidate -c 'import mpi4py' 2>/dev/null ||
        python=$candidate
done
if [ -n "$python" ]; then
    library=$abs_top_builddir/lib/.libs/libdscomm.so
    # shellcheck disable=SC2086
    DSCOMM_BACKEND=mpi $launch -n 3 "$python" \
        "$abs_top_srcdir/tests/backends/mpi-host.py" "$library" \
        >"$scratch/out" 2>"$scratch/err" </dev/null
    [ $? = 0 ] && [ "$(said content)" -eq 3 ]
    result $? 'mpi4py in the same process' || sed 's/^/# /' "$scratch/err"
else
    skip 'mpi4py in the same process' "$reason"
fi

# The survivors of a rank that is killed go on; no call of MPI crashes when they
# end. mpirun's status says nothing about that.
digits=$abs_top_builddir/examples/digits/digits
data=$abs_top_srcdir/examples/digits/digits.csv.gz
if [ -x "$digits" ]; then
    DSCOMM_BACKEND=shm "$abs_top_builddir/tools/dscomm" run -n 3 "$digits" -e 6 "$data" \
        >"$scratch/three"
    # shellcheck disable=SC2086
    DSCOMM_BACKEND=mpi DSCOMM_MPI_BLOCKING=no DSCOMM_TIMEOUT=20 $launch $survive -n 4 \
        "$digits" --survive --kill 2:100 -e 6 "$data" >"$scratch/out" 2>"$scratch/err" \
        </dev/null
    sed -n 's/^epoch 6: loss //p' "$scratch/three" "$scratch/out" | awk '
        { loss[NR] = $1 } END { d = loss[1] - loss[2]
          exit !(NR == 2 && d < 1e-5 && d > -1e-5) }' &&
        grep -q '^rank [0-3] has failed; 3 of 4 ranks go on$' "$scratch/out" &&
        grep -q '^time: ' "$scratch/out" && ! grep -q 'Signal: ' "$scratch/err"
    result $? 'digits goes on without a rank, and ends well' ||
        sed 's/^/# /' "$scratch/out" "$scratch/err"
else
    skip 'digits goes on without a rank' 'digits was not built: no zlib'
fi

# Nothing ends a blocking collective of MPI, but a thread says that it is overdue.
overdue()
{
    rm -rf "$scratch/dumps"
    # shellcheck disable=SC2086
    DSCOMM_BACKEND=mpi DSCOMM_MPI_BLOCKING=yes DSCOMM_TIMEOUT=1 \
        DSCOMM_DUMP=$scratch/dumps timeout -k 5 6 mpirun.openmpi --oversubscribe \
        --bind-to none -n 3 "$abs_top_builddir/tests/tools/failing" late \
        >"$scratch/out" 2>"$scratch/err" </dev/null
}
overdue
like "$(cat "$scratch/err")" \
    'rank 0 of 3\) has not come back within 1000 ms: rank 1 \(pid .*\) has not made this call' \
    'a blocking call that is overdue' || sed 's/^/# /' "$scratch/err"
is "$(ls "$scratch/dumps" | wc -l)" 1 'it writes a dump'
like "$("$abs_top_builddir/tools/dscomm" analyze "$scratch/dumps")" \
    "group 'world': rank 1 is behind" 'which names the late rank'
DSCOMM_WATCHDOG=no
export DSCOMM_WATCHDOG
overdue
[ ! -e "$scratch/dumps" ]
result $? 'not without a watchdog'
unset DSCOMM_WATCHDOG

# Started by nothing that knows of MPI
launch="$abs_top_builddir/tools/dscomm run"
start 2 complain
like "$err" 'not wired up.*mpirun' 'dscomm run is no launcher of MPI'
DSCOMM_MPI_LIBRARY=mpich
export DSCOMM_MPI_LIBRARY
start 2 complain
like "$err" 'DSCOMM_MPI_LIBRARY is mpich.*openmpi' 'another MPI than the program has'
unset DSCOMM_MPI_LIBRARY
DSCOMM_MPI_PATH=/nonexistent DSCOMM_BACKEND=mpi $launch -n 2 \
    "$abs_top_builddir/examples/hello/hello" >"$scratch/out" 2>&1
like "$(cat "$scratch/out")" 'no module for an MPI library' 'no MPI at all'

# By the other one's mpirun
if command -v mpirun.mpich >/dev/null; then
    launch='timeout -k 5 60 mpirun.mpich -localhost localhost'
    start 2 complain
    like "$err" 'not wired up' "MPICH's mpirun: a program without MPI_Init()"
    start 2 lost
    like "$err" 'not wired up: it has 1 rank where the job has 2' \
        "MPICH's mpirun: after MPI_Init()"
else
    skip "MPICH's mpirun" 'no mpirun.mpich'
fi

tap_done
