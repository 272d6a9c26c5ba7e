/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's version is that of the headers it was built with. */
#include "config.h"

#include <dscomm/version.h>

#include "tests/tap.h"

int main(void)
{
    is_int(dscomm_version(), 1000, "0.1.0 as a number");
    is_str(dscomm_version_string(), PACKAGE_VERSION, "and as text");
    return tap_done();
}
