#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The backend of torch.distributed: its installation beside an installed dscomm, and what it
# computes. Needs a Python that has torch: DSCOMM_TEST_PYTHON, or else python3.

. "$abs_top_srcdir/tests/tap.sh"

python=${TEST_PYTHON:-python3}
no_torch=${NO_TORCH:-"$python has no torch.distributed; set DSCOMM_TEST_PYTHON"}
"$python" -c 'import torch.distributed.run' >/dev/null 2>&1 || skip_all "$no_torch"
"$python" -c 'import setuptools' >/dev/null 2>&1 && "$python" -m pip --version >/dev/null 2>&1 ||
    skip_all "$python has no pip or setuptools"
case $SANITIZER_FLAGS in
*fsanitize*) skip_all 'Python runs without sanitizers' ;;
esac

# As a user would, but in a folder that is removed.
unset CC CXX
root=$scratch/root
site=$scratch/site
make -s -C "$abs_top_builddir" install DESTDIR="$root" >"$scratch/log" 2>&1 ||
    { sed 's/^/# /' "$scratch/log" | tail -n 20 && bail 'cannot install dscomm'; }
PKG_CONFIG_SYSROOT_DIR=$root
PKG_CONFIG_PATH=$root$libdir/pkgconfig
export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH
cp -R "$abs_top_srcdir/bindings/torch" "$scratch/torch"
chmod -R u+w "$scratch/torch"
PATH=$(dirname "$python"):$PATH "$python" -m pip install -q --no-build-isolation --no-deps \
    --no-index --target "$site" "$scratch/torch" >"$scratch/log" 2>&1
result $? 'pip installs it' || sed 's/^/# /' "$scratch/log" | tail -n 40

# A name that another module has is no import: torch finds the backend by itself.
unset DSCOMM_BACKEND DSCOMM_BACKEND_PATH
PYTHONPATH=$site
export PYTHONPATH
for ranks in 1 2 3 4; do
    timeout 200 "$python" -m torch.distributed.run --standalone --nproc-per-node $ranks \
        "$abs_top_srcdir/tests/bindings/torch-ranks.py" >"$scratch/out" 2>"$scratch/err"
    status=$?
    sed -n 's/^ok [0-9]* - /1 /p; s/^not ok [0-9]* - /0 /p' "$scratch/out" >"$scratch/checks"
    [ $status = 0 ] && [ -s "$scratch/checks" ]
    result $? "$ranks ranks: status" || tail -n 40 "$scratch/err" | sed 's/^/# /'
    while read -r passed name; do
        [ "$passed" = 1 ]
        result $? "$name" || sed -n 's/^# rank/# &/p' "$scratch/err" | head -n 20
    done <"$scratch/checks"
done
tap_done
