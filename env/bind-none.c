/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding without hwloc, see bind.h: there is none. */
#include "config.h"

#include "env/bind.h"

#include "lib/base/settings.h"
#include "lib/base/status.h"

#include <string.h>

dscomm_status_t dscomm_priv_bind(int rank, int world_size)
{
    const char *text = dscomm_priv_setting_text(SETTING_BIND);
    char quoted[96];

    (void)rank;
    (void)world_size;
    if (strcmp(text, "none") == 0)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                       "DSCOMM_BIND='%s': this libdscomm was built without "
                       "hwloc; unset it and let the launcher bind the ranks, "
                       "as dscomm run --bind does",
                       dscomm_priv_quote(text, quoted, sizeof quoted));
}
