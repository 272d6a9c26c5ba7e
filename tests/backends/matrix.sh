#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# matrix.sh TEST.rows: the runs of the conformance suite in the rows of that test.

name=$(basename "$1" .rows)
matrix=$abs_top_srcdir/tests/backends/matrix
case $(awk -v name="$name" '$1 == name { print $2; exit }' "$matrix") in
run) . "$abs_top_srcdir/tests/backends/conform.sh" ;;
openmpi) . "$abs_top_srcdir/tests/backends/mpi.sh" && use_openmpi ;;
mpich) . "$abs_top_srcdir/tests/backends/mpi.sh" && use_mpich ;;
*) echo "Bail out! the matrix has no rows of $name" && exit 99 ;;
esac
. "$abs_top_srcdir/tests/backends/hosts.sh"
mpirun=$launch

# run_all BACKEND RANKS AREA...: a run for each number in RANKS
run_all()
{
    backend=$1 all=$2
    shift 2
    for ranks in $(echo "$all" | tr , ' '); do
        case $*,$ranks in
        must_fail,*) conform_must_fail "$backend" "$ranks" ;;
        *,*[a-z]*) on "$ranks" "$backend" "$@" ;;
        *) conform "$backend" "$ranks" "$@" ;;
        esac
    done
}

# rules N: the N-th algorithm of each collective that has so many
rules()
{
    while read -r collective names; do
        # shellcheck disable=SC2086
        set -- "$1" $names
        [ $# -gt "$1" ] && eval "printf '%s:%s,' $collective \${$(($1 + 1))}"
    done <"$scratch/list"
    :
}

# run_each BACKEND RANKS AREA...: run_all by every algorithm that there is on one node
run_each()
{
    # "  all_gather  ring, linear, ..." becomes "all_gather ring linear ...".
    "$abs_top_builddir/tools/dscomm" info --algorithms |
        sed -e '1,/^All algorithms/d' -e 's/,//g' -e 's/^ *//' -e 's/ two_level//' \
            >"$scratch/list"
    [ -s "$scratch/list" ]
    result $? 'dscomm info lists the algorithms'
    number=1
    while DSCOMM_ALGORITHM=$(rules $number) && [ -n "$DSCOMM_ALGORITHM" ]; do
        export DSCOMM_ALGORITHM
        echo "# DSCOMM_ALGORITHM=$DSCOMM_ALGORITHM"
        run_all "$@"
        number=$((number + 1))
    done
    unset DSCOMM_ALGORITHM
    [ $number -gt 4 ]
    result $? "$((number - 1)) algorithms of a collective were tried"
}

# run_seeds BACKEND RANKS AREA...: run_all with each seed of backend loop
run_seeds()
{
    for seed in ${LOOP_SEEDS:-1 2}; do
        export DSCOMM_LOOP_SEED="$seed"
        echo "# DSCOMM_LOOP_SEED=$seed"
        run_all "$@"
    done
    unset DSCOMM_LOOP_SEED
}

# row BACKEND RANKS WORD...: one row, after its launcher
row()
{
    echo "# $name: $*"
    backend=$1 all=$2 way=run_all settings= areas=
    shift 2
    for word in "$@"; do
        case $word in
        DSCOMM_LOOP_SEED=@each) way=run_seeds ;;
        *=@each) way=run_each ;;
        *=@two_level) settings="$settings DSCOMM_ALGORITHM=$levels" ;;
        *=*) settings="$settings $word" ;;
        *) areas="$areas $word" ;;
        esac
    done
    launch="env$settings $mpirun"
    # shellcheck disable=SC2086
    $way "$backend" "$all" $areas
}

case $(grep "^$name " "$matrix") in
*=mailbox*) make_mailbox || skip_all 'the example backend cannot be compiled' ;;
*' loop '*)
    DSCOMM_BACKEND_PATH=$DSCOMM_BACKEND_PATH:$abs_top_builddir/tests/backends/net/.libs
    export DSCOMM_BACKEND_PATH
    ;;
esac
grep "^$name " "$matrix" >"$scratch/rows"
while read -r _ _ words <&3; do
    # shellcheck disable=SC2086
    row $words 3<&-
done 3<"$scratch/rows"
tap_done
