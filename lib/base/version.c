/* SPDX-License-Identifier: BSD-3-Clause */
/* The version of the library that runs. */
#include "config.h"

#include <dscomm/version.h>

int dscomm_version(void)
{
    return DSCOMM_VERSION;
}

const char *dscomm_version_string(void)
{
    return DSCOMM_VERSION_STRING;
}
