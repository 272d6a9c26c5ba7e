#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The failure campaign on each backend of campaign.table. With arguments, those rows
# only. $CAMPAIGN_RUNS is the number of runs of each row, or all for the table's; by
# default the table's small numbers. $CAMPAIGN_SEED is the seed of the first run.

. "$abs_top_srcdir/tests/backends/mpi.sh"

program=$abs_top_builddir/tests/backends/campaign
table=$abs_top_srcdir/tests/backends/campaign.table
wanted=" $* "

total=0 harmed=0 within=0

# play WHAT [NAME=VALUE...] PROGRAM [OPTION...]: runs the campaign, and adds up its runs
play()
{
    what=$1
    shift
    env "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    pass_on "$what"
    [ "$?$status" = 00 ]
    result $? "the campaign on $what comes to its end" || sed 's/^/# /' "$scratch/err"
    read -r counted harms hangs <<END
$(sed -n 's/.*: \([0-9]*\) runs, \([0-9]*\) with harm, \([0-9]*\) failed.*/\1 \2 \3/p' "$scratch/out" |
    awk '{ runs += $1; harms += $2; mpi += $3 } END { print runs + 0, harms + 0, mpi + 0 }')
END
    total=$((total + counted)) harmed=$((harmed + harms)) within=$((within + hangs))
}

# row NAME LAUNCHER RUNS FEW NAME=VALUE...
row()
{
    name=$1 launcher=$2 runs=${CAMPAIGN_RUNS:-$4} only=
    [ "$runs" != all ] || runs=$3
    shift 4
    launch=
    if [ "$launcher" != fork ]; then
        use_if_present "$launcher" || return
        launch="${launch#timeout -k 5 200 } $survive"
        # How ranks end under MPI depends on its timing.
        [ "$CAMPAIGN_RUNS" ] || only='-f collective'
    fi
    # Launcher and options are words.
    # shellcheck disable=SC2086
    play "$name" "$@" "$program" -n "$runs" -s "${CAMPAIGN_SEED:-1}" $only $launch
    [ "$CAMPAIGN_RUNS" ] || return
    for request in malloc mmap memfd sendmsg; do
        # shellcheck disable=SC2086
        play "$name, $request" "$@" "$program" -n "$runs" -s 0 -f $request $launch
    done
}

grep '^[a-z]' "$table" >"$scratch/rows"
while read -r words <&3; do
    case $wanted in
    '  ' | *" ${words%% *} "*)
        # shellcheck disable=SC2086
        row $words 3<&-
        ;;
    esac
done 3<"$scratch/rows"
echo "# $total runs, $harmed with harm, $within failed within MPI"
tap_done
