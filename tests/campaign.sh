#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make check-campaign: what finds more the longer it runs. First the failure campaign on
# each backend. Then each of $CAMPAIGN_ROUNDS rounds draws from another seed, the first
# from $CAMPAIGN_SEED, and prints it.

. "$abs_top_srcdir/tests/backends/conform.sh"

tests=$abs_top_builddir/tests
parts=40 # of all requests for memory and all system calls, one a round

# try NAME COMMAND [ARGUMENT...]: passes the command's results on
try()
{
    name=$1
    shift
    "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    pass_on "$name, seed $seed"
    [ "$?$status" = 00 ]
    result $? "$name comes to its end, seed $seed" || sed 's/^/# /' "$scratch/err"
}

# soak BACKEND RANKS: random operations on random groups
soak()
{
    DSCOMM_BACKEND=$1
    # The launcher is a command with arguments.
    # shellcheck disable=SC2086
    try "soak of $1, $2 ranks" $launch -n "$2" "$conformance" stress works p2p
}

seed=${CAMPAIGN_SEED:?}
CAMPAIGN_RUNS=${CAMPAIGN_RUNS:-all}
export CAMPAIGN_RUNS CAMPAIGN_SEED
try failures "${SHELL:-sh}" "$abs_top_srcdir/tests/backends/campaign.sh"
round=0
while [ $round -lt "${CAMPAIGN_ROUNDS:?}" ]; do
    seed=$((CAMPAIGN_SEED + round))
    CONFORM_SEED=$seed FUZZ_SEED=$seed
    export CONFORM_SEED FUZZ_SEED
    unset DSCOMM_BACKEND
    try 'no memory' "$tests/backends/no-memory.t" all $((seed % parts)) $parts
    try 'system calls' "$tests/backends/system-calls.t" all $((seed % parts)) $parts
    try frames "$tests/lib/store/frames.t" 100000 $seed
    for target in codes environment state store; do
        try "fuzz $target" "$tests/fuzz/$target.t"
    done
    export DSCOMM_BACKEND
    for ranks in 3 4 8; do
        soak shm $ranks
    done
    round=$((round + 1))
done
tap_done
