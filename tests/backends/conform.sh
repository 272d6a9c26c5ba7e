# SPDX-License-Identifier: BSD-3-Clause
# For the scripts that run the conformance suite: conform BACKEND RANKS
# [AREA...] runs it under $launch ("LAUNCHER -n RANKS PROGRAM" must start it)
# and passes its results on.
# shellcheck shell=sh

. "$abs_top_srcdir/tests/tap.sh"

: "${launch:=$abs_top_builddir/tools/dscomm run --timeout 280}"
conformance=$abs_top_builddir/tests/backends/conformance

# Lines of the suite's TAP, with our numbers and its ranks; the plan comes last.
pass_on()
{
    plan=missing
    while IFS= read -r line; do
        case $line in
        "ok "*"# SKIP"*) skip "$1" "${line#*# SKIP }" ;;
        "ok "*) result 0 "${line#ok * - }, $1" ;;
        "not ok "*) result 1 "${line#not ok * - }, $1" ;;
        "1.."*) plan=$line ;;
        "Bail out!"*) echo "# $line" ;;
        "#"*) echo "$line" ;;
        *) echo "# $line" ;;
        esac
    done <"$scratch/out"
    [ "$plan" != missing ]
}

conform()
{
    backend=$1 ranks=$2
    shift 2
    DSCOMM_BACKEND=$backend $launch -n "$ranks" "$conformance" "$@" \
        >"$scratch/out" 2>"$scratch/err"
    status=$?
    pass_on "$ranks ranks"
    complete=$?
    head -n 200 "$scratch/err" | sed 's/^\([^#]\)/# \1/'
    [ "$complete$status" = 00 ]
    result $? "the suite and its launcher come to their end with $ranks ranks" ||
        echo "# exit status $status"
}

# A suite in which one rank fails must say so.
conform_must_fail()
{
    DSCOMM_BACKEND=$1 $launch -n "$2" "$conformance" must_fail \
        >"$scratch/out" 2>"$scratch/err"
    [ $? != 0 ] && grep -q '^not ok 1 ' "$scratch/out" &&
        grep -q "^# rank $(($2 - 1)) of $2: " "$scratch/err"
    result $? "a failure on one of $2 ranks is seen" ||
        sed 's/^/# /' "$scratch/out" "$scratch/err"
}
