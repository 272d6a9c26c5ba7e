#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What tests/gpu/run makes of its programs, which are stand-ins here: all checks have
# a line each, and one that fails is told.

. "$abs_top_srcdir/tests/tap.sh"

build=$scratch/build
mkdir -p "$build/compression/.libs" "$build/tests/gpu" "$build/tests/backends" \
    "$build/tests/compression" "$build/tools" "$scratch/bin" "$scratch/other"
: >"$build/compression/.libs/cuda.so"
: >"$scratch/other/ptx.so"

# stand_in PATH: its commands come on standard input
stand_in()
{
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}

all_is_well()
{
    stand_in "$build/tests/gpu/equal" <<'END'
echo 'ok 1 - a comparison'
END
    stand_in "$build/tests/gpu/pointers" <<'END'
echo 'ok 1 - malloc'
END
    stand_in "$build/tests/gpu/rates" <<'END'
echo '# 1024 elements; a copy on the device: 4.00 TB/s read and written'
echo '# a launch and its end: 5.0 us'
echo 'ok 1 - 20 times the worker: the same'
echo 'ok 2 - materialise 1 ms 2 TB/s 90 % of the copy, bar 85 %'
echo "ok 3 - from pinned memory 50 GB/s of $2, bar 80 %"
echo '# worker and its row to the host: 1 ms by a copy, 2 ms written there'
END
    stand_in "$build/tests/compression/staged" <<'END'
time=${RANKS:+3}.010 way='as they are to'
[ -z "$DSCOMM_CUDA_AWARE" ] || time=3.510 way='by host memory, since it is not for'
for i in ${RANKS-1 2}; do echo "content 1024 elements, $time ms"; done
echo 'buffers of a device are compressed there' >&2
if [ "$DSCOMM_BACKEND" = shm ]; then
    for i in $RANKS; do
        echo 'encoded rows of a device are read there by the other ranks' >&2
    done
else
    echo "encoded rows of a device go $way backend ${DSCOMM_BACKEND:-shm}" >&2
fi
END
    stand_in "$build/tests/backends/device" <<'END'
echo 'content 0' && echo 'content 0'
echo "buffers of a device go as they are to backend mpi" >&2
END
    stand_in "$build/tools/dscomm" <<'END'
RANKS=$(seq "$3") && export RANKS && shift 3 && exec "$@"
END
    stand_in "$scratch/bin/mpirun" <<'END'
shift 2 && RANKS='1 2 3 4' exec "$@"
END
    stand_in "$scratch/bin/compute-sanitizer" <<'END'
echo 'ERROR SUMMARY: 0 errors'
END
    stand_in "$scratch/bin/nvidia-smi" <<'END'
case $* in
*pcie*) echo '5, 16' ;;
*) echo 'a device, 1.2' ;;
esac
END
}

run()
{
    said=$(PATH=$scratch/bin:$PATH MPIRUN=mpirun \
        DSCOMM_CUDA_OTHER=$scratch/other \
        "$abs_top_srcdir/tests/gpu/run" "$build" 10 2>&1)
}

all_is_well
run
is $? 0 'all checks pass' || echo "$said" | sed 's/^/# /'
for number in 1 2 3 4-5 6 8 9 10 12 13 14 15; do
    like "$said" "check $number: pass" "check $number has passed"
done
for number in 7 11; do
    like "$said" "check $number: skip: ." "check $number says why not"
done
is "$(echo "$said" | grep -c 'check 10: skip')" 0 'windows were there'
like "$said" 'of 63.04, bar' 'the rate of the link is made of its generation'

# broken PATH NUMBER TEXT: with that stand-in, that check fails
broken()
{
    all_is_well
    stand_in "$1"
    run
    is $? 1 "$3: failure"
    like "$said" "check $2: FAIL" "$3: it is told"
}

broken "$build/tests/gpu/equal" 2 'another result' <<'END'
echo 'not ok 1 - a comparison'
exit 1
END
broken "$build/tests/gpu/equal" 1 'a device that is not found' <<'END'
exit 139
END
broken "$build/tests/compression/staged" 6 'slow small calls' <<'END'
echo 'content 1024 elements, 0.020 ms'
[ "$RANKS" ] || echo 'content 1048576 elements, 0.026 ms'
END
# 1.235 ms of kernels and 1.846 of the link, at 80 %: 3.851
broken "$build/tests/compression/staged" 8 'slow calls of 4 ranks' <<'END'
for i in ${RANKS-1 2}; do echo "content 1024 elements, ${RANKS:+4.5}0 ms"; done
echo 'buffers of a device are compressed there' >&2
END
like "$said" 'FAIL: a call takes no longer than 3.851 ms' 'the bound is told'
broken "$build/tests/compression/staged" 9 'rows that are slower as they are' <<'END'
time=${RANKS:+3}.010 way='as they are to'
[ -z "$DSCOMM_CUDA_AWARE" ] || time=2.010 way='by host memory, since it is not for'
for i in ${RANKS-1 2}; do echo "content 1024 elements, $time ms"; done
echo 'buffers of a device are compressed there' >&2
echo "encoded rows of a device go $way backend ${DSCOMM_BACKEND:-shm}" >&2
END
broken "$build/tests/compression/staged" 9 'rows that take the way of the host' <<'END'
for i in ${RANKS-1 2}; do echo "content 1024 elements, ${RANKS:+2}.010 ms"; done
echo 'buffers of a device are compressed there' >&2
echo "encoded rows of a device go as they are to backend ${DSCOMM_BACKEND:-shm}" >&2
END
all_is_well
stand_in "$build/tests/compression/staged" <<'END'
for i in ${RANKS-1 2}; do echo "content 1024 elements, ${RANKS:+2}.010 ms"; done
echo 'buffers of a device are compressed there' >&2
echo 'encoded rows of a device go by host memory, since rank 0 cannot map' >&2
END
run
is $? 0 'an MPI that takes no device memory is no failure'
like "$said" 'check 9: skip: rows as they are: go by host memory, since' \
    'and is told of'
like "$said" 'check 10: skip: 8 ranks, through windows: go by host memory, since' \
    'nor are windows that cannot be had'
export DSCOMM_REQUIRE_CUDA=1
broken "$build/tests/compression/staged" 10 'windows without a reason' <<'END'
for i in ${RANKS-1 2}; do echo "content 1024 elements, ${RANKS:+2}.010 ms"; done
echo 'buffers of a device are compressed there' >&2
echo 'encoded rows of a device go by host memory, since it is not for shm' >&2
END
unset DSCOMM_REQUIRE_CUDA
broken "$build/tests/compression/staged" 10 'a rank that is not content' <<'END'
for i in ${RANKS-1 2}; do
    [ "$1$i" = -r8 ] || echo "content 1024 elements, ${RANKS:+2}.010 ms"
done
END
broken "$build/tests/gpu/pointers" 1 'whose memory it is' <<'END'
exit 1
END
broken "$build/tests/gpu/rates" 4-5 'a slow kernel' <<'END'
echo 'ok 1 - 20 times the worker: the same'
echo 'not ok 2 - worker 9 ms 1 TB/s 20 % of the copy, bar 85 %'
echo 'ok 3 - materialise 1 ms 2 TB/s 90 % of the copy, bar 85 %'
exit 1
END
broken "$build/tools/dscomm" 8 'a rank that is lost' <<'END'
shift 3 && RANKS='1 2 3' exec "$@"
END
broken "$build/tests/backends/device" 9 'a rank over MPI' <<'END'
exit 3
END
broken "$scratch/bin/compute-sanitizer" 3 'a race' <<'END'
echo 'ERROR SUMMARY: 2 errors'
END
broken "$build/tests/gpu/rates" 15 'a variant that is faster' <<'END'
case $TEST_CUDA_MODULE in */ptx.so) time=0.94 ;; *) time=1 ;; esac
echo 'ok 1 - 20 times the worker: the same'
echo "ok 2 - materialise p=2    $time ms 2 TB/s 90 % of the copy, bar 85 %"
END
like "$said" 'faster by 5 %: ptx.so has materialise p=2 in 0.94 ms' 'and which'
LIMIT=5
export LIMIT
broken "$build/tests/gpu/rates" 4-5 'a program that does not end' <<'END'
exec sleep 60
END
unset LIMIT
like "$said" 'check 8: pass: 4 ranks, .* \[[0-9]* s\]' \
    'the others are run, and the time is told'
all_is_well
stand_in "$build/tests/gpu/equal" <<'END'
echo '1..0 # SKIP no CUDA device'
exit 77
END
run
is $? 77 'no device'
tap_done
