/* SPDX-License-Identifier: BSD-3-Clause */
/* file://: a log of torch's FileStore format, shared by flock. */
#include "config.h"

#include "lib/store.h"

#include "lib/status.h"

dscomm_status_t dscomm_priv_store_file(const char *path,
                                       const dscomm_store_attr_t *attr,
                                       dscomm_priv_store_t **ret_store)
{
    (void)attr;
    (void)ret_store;
    return dscomm_fail(DSCOMM_ERR_UNSUPPORTED, "store file %s: not yet", path);
}
