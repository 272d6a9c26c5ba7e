#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# version.h is literal; it says what configure.ac says.

. "$abs_top_srcdir/tests/tap.sh"

# value NAME: of a macro
value()
{
    sed -n "s/^#define DSCOMM_VERSION_$1 \"*\\([0-9.]*\\)\"*\$/\\1/p" \
        "$abs_top_srcdir/lib/dscomm/version.h"
}

is "$(value STRING)" "$PACKAGE_VERSION" 'text'
is "$(value MAJOR).$(value MINOR).$(value MICRO)" "$PACKAGE_VERSION" 'numbers'
tap_done
