# SPDX-License-Identifier: BSD-3-Clause
# For tests of launchers: what they start, and what must come of it.
# shellcheck shell=sh

hello=$abs_top_builddir/examples/hello/hello
digits=$abs_top_builddir/examples/digits/digits
dscomm=$abs_top_builddir/tools/dscomm
data=$abs_top_srcdir/examples/digits/digits.csv.gz
DSCOMM_TIMEOUT=60
# Only a whole stack shows that leaked memory is MPI's.
ASAN_OPTIONS=fast_unwind_on_malloc=0:$ASAN_OPTIONS
export DSCOMM_TIMEOUT ASAN_OPTIONS

# No rank of an outer job.
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT

# told N FAMILY TEXT: $scratch/out is what dscomm env --json says in N ranks, started
# by FAMILY
told()
{
    sed -n "s/^{\"source\":\"$2\",\"rank\":\([0-9]*\),\"world_size\":$1,.*\"error\":null.*/\1/p" \
        "$scratch/out" | sort -n >"$scratch/ranks"
    seq 0 $(($1 - 1)) >"$scratch/want"
    [ "$status" = 0 ] && cmp -s "$scratch/want" "$scratch/ranks"
    result $? "$3" || {
        echo "# status $status"
        { cat "$scratch/out"; printf '%s\n' "$err"; } | sed 's/^/# /'
    }
}

# given N TEXT: $scratch/out has RANK, WORLD_SIZE, LOCAL_RANK and MASTER_ADDR of N
# ranks on this machine
given()
{
    sort -n "$scratch/out" >"$scratch/ranks"
    i=0
    while [ $i -lt "$1" ]; do
        echo "$i $1 $i 127.0.0.1"
        i=$((i + 1))
    done >"$scratch/want"
    [ "$status" = 0 ] && cmp -s "$scratch/want" "$scratch/ranks"
    result $? "$2" || {
        echo "# status $status"
        { cat "$scratch/out"; printf '%s\n' "$err"; } | sed 's/^/# /'
    }
}

# bail REASON: what should work does not
bail()
{
    echo "Bail out! $1"
    exit 99
}

# run COMMAND...: its output in $scratch/out, what it says in $err, its $status
run()
{
    timeout -k 5 120 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    err=$(cat "$scratch/err")
}

# ranks N TEXT: $scratch/out is that of N ranks of hello, each there once, with the
# sum of their numbers, and the status is 0
ranks()
{
    grep '^rank ' "$scratch/out" | sort -n -k 2 >"$scratch/ranks"
    i=0
    while [ $i -lt "$1" ]; do
        echo "rank $i of $1: the sum of all ranks is $(($1 * ($1 - 1) / 2))"
        i=$((i + 1))
    done >"$scratch/want"
    [ "$status" = 0 ] && cmp -s "$scratch/want" "$scratch/ranks"
    result $? "$2" || {
        echo "# status $status"
        { cat "$scratch/out"; printf '%s\n' "$err"; } | head -n 60 |
            sed 's/^/# /'
    }
}
