/* SPDX-License-Identifier: BSD-3-Clause */
/* See attr.h. */
#include "config.h"
#include "lib/attr.h"

#include <glib.h>
#include <string.h>

#define SIZE_MOST 4096

dscomm_status_t dscomm_priv_attr_read(const char *name, const char *initializer,
                                      const void *attr, size_t size,
                                      void *ret_attr)
{
    const unsigned char *bytes = attr;
    size_t theirs;

    if (!attr)
        return DSCOMM_OK;
    memcpy(&theirs, attr, sizeof theirs);
    if (theirs < sizeof theirs || theirs > SIZE_MOST)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: attr.size is %zu; start from %s", name, theirs,
                           initializer);
    for (size_t i = size; i < theirs; i++)
        if (bytes[i])
            return dscomm_fail(DSCOMM_ERR_INVALID,
                               "%s: attr has members that this libdscomm does "
                               "not know (byte %zu is set)",
                               name, i);
    memcpy(ret_attr, attr, MIN(theirs, size));
    return DSCOMM_OK;
}
