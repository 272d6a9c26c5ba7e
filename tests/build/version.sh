#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# version.h is literal; it says what configure.ac says.

header=$abs_top_srcdir/lib/dscomm/version.h

# value NAME: of a macro
value()
{
    sed -n "s/^#define DSCOMM_VERSION_$1 \"*\\([0-9.]*\\)\"*\$/\\1/p" "$header"
}

# is N GOT WANT TEXT
is()
{
    [ "$2" = "$3" ] && echo "ok $1 - $4" && return
    echo "not ok $1 - $4"
    echo "# got '$2', want '$3'"
}

echo 1..2
is 1 "$(value STRING)" "$PACKAGE_VERSION" 'text'
is 2 "$(value MAJOR).$(value MINOR).$(value MICRO)" "$PACKAGE_VERSION" 'numbers'
