#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The backend of torch.distributed as its README says: pip installs it in a new virtual
# environment, beside a dscomm that is installed. The packages that the first of README's
# lines installs, and torch, are those of the Python that configure was given.

. "$abs_top_srcdir/tests/tap.sh"
. "$abs_top_srcdir/tests/bindings/site.sh"

unset MAKEFLAGS MFLAGS MAKELEVEL PYTHONPATH
root=$scratch/root
"$MAKE" -C "$abs_top_builddir" install DESTDIR="$root" >"$scratch/log" 2>&1
result $? 'make install' || sed 's/^/# /' "$scratch/log" | tail -n 20

"$python" -m venv "$scratch/venv" >"$scratch/log" 2>&1
result $? 'a new virtual environment' || sed 's/^/# /' "$scratch/log"
"$python" -c 'import site; print(*site.getsitepackages(), sep="\n")' >"$scratch/others.pth" &&
    mv "$scratch/others.pth" "$("$scratch/venv/bin/python3" -c \
        'import site; print(site.getsitepackages()[0])')"
PATH=$scratch/venv/bin:$PATH
export PATH

# What is installed below $root is found as if it were where it belongs.
PKG_CONFIG_DISABLE_UNINSTALLED=1 PKG_CONFIG_SYSROOT_DIR=$root
PKG_CONFIG_PATH=$root$libdir/pkgconfig LD_LIBRARY_PATH=$root$libdir
DSCOMM_BACKEND_PATH=$root$backenddir
export PKG_CONFIG_DISABLE_UNINSTALLED PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH LD_LIBRARY_PATH
export DSCOMM_BACKEND_PATH

line=$(sed -n 's/^    \(.*pip install .*bindings\/torch\)$/\1/p' "$abs_top_srcdir/bindings/torch/README.md")
like "$line" '^python3 -m pip install ' "the line of README"
mkdir "$scratch/bindings"
cp -R "$abs_top_srcdir/bindings/torch" "$scratch/bindings"
chmod -R u+w "$scratch/bindings"
cd "$scratch" || exit 99
# The compilers of this build may be others than torch wants.
(unset CC CXX; eval "$line" --no-deps --no-index) >"$scratch/log" 2>&1
result $? "$line" || sed 's/^/# /' "$scratch/log" | tail -n 20
like "$(python3 -c 'import dscomm_torch; print(dscomm_torch.__file__)' 2>&1)" \
    "^$scratch/venv/" 'the environment has it'
python=$scratch/venv/bin/python3
torchrun 2 "$programs/torch-ranks.py"
tap_done
