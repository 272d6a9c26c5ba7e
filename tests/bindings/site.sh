# SPDX-License-Identifier: BSD-3-Clause
# For tests of the backend of torch.distributed: $python, a Python that has torch, finds the
# backend that this build has installed for it. Sourced after tap.sh.
# shellcheck shell=sh

[ -n "$TORCH_PYTHON" ] || skip_all "${NO_TORCH:-configured without --with-torch=PYTHON}"
python=$TORCH_PYTHON
programs=$abs_top_srcdir/tests/bindings

# torch imports nothing: the entry point of the package registers the backend.
unset DSCOMM_BACKEND
PYTHONPATH=$abs_top_builddir/bindings/site
export PYTHONPATH

# checks TEXT COMMAND...: a program whose checks become checks here
checks()
{
    text=$1
    shift
    timeout 300 "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    sed -n 's/^ok [0-9]* - /1 /p; s/^not ok [0-9]* - /0 /p' "$scratch/out" >"$scratch/checks"
    planned=$(sed -n 's/^1\.\.//p' "$scratch/out")
    [ $status = 0 ] && [ "$(wc -l <"$scratch/checks")" = "$planned" ]
    result $? "$text: status" || tail -n 40 "$scratch/err" | sed 's/^/# /'
    while read -r passed name; do
        [ "$passed" = 1 ]
        result $? "$name" || sed -n 's/^#/# &/p' "$scratch/err" | head -n 20
    done <"$scratch/checks"
}

# torchrun RANKS PROGRAM...: checks of this many ranks
torchrun()
{
    ranks=$1
    shift
    checks "$ranks ranks of $(basename "$1")" "$python" -m torch.distributed.run --standalone \
        --nproc-per-node "$ranks" "$@"
}

# has MODULE...: whether the Python has them
has()
{
    "$python" -c "import $*" >/dev/null 2>&1
}

# suite OPTION...: runs PyTorch's own tests, with their results in the file $results
suite()
{
    results=$scratch/suite
    rm -f "$results"
    "$python" "$programs/torch-suite.py" --output "$results" "$@" >"$scratch/suite.log" 2>&1
    [ -s "$results" ] && return
    result 1 "torch-suite.py $*" || sed 's/^/# /' "$scratch/suite.log"
    : >"$results"
}
