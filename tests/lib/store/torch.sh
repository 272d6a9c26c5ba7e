#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The store and torch's own, each as the server of the other. Needs a Python that
# has torch: DSCOMM_TEST_PYTHON, or else python3.

. "$abs_top_srcdir/tests/tap.sh"

python=${TEST_PYTHON:-python3}
no_torch=${NO_TORCH:-"$python has no torch.distributed; set DSCOMM_TEST_PYTHON"}
library=$abs_top_builddir/lib/.libs/libdscomm.so
[ -z "$(echo $SANITIZER_FLAGS)" ] ||
    skip_all 'Python cannot load a library with sanitizers'
[ -e "$library" ] || skip_all 'libdscomm is not built as a shared library'
"$python" -c 'import torch.distributed as d; d.TCPStore, d.FileStore' \
    >/dev/null 2>&1 ||
    skip_all "$no_torch"
"$python" "$abs_top_srcdir/tests/lib/store/torch-peer.py" "$library" "$scratch"
