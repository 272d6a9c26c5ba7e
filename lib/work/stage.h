/* SPDX-License-Identifier: BSD-3-Clause */
/* Staging: copies device buffers of a call to host memory, on which the call
 * then runs. */
#ifndef LIB_STAGE_H
#define LIB_STAGE_H

#include "lib/device/device.h"
#include "lib/work/work.h"

/* 1 if call has a buffer in device memory. */
int dscomm_priv_stage_wanted(const dscomm_group_t *group,
                             const dscomm_call_t *call);
/* Prepares such a call. If the backend takes device buffers, waits for the
 * stream. Otherwise puts host memory into call, with a copy of what it sends,
 * and sets call->bounce, which the call's owner must finish and free. If a
 * collective fails here, the group ends. The choice is logged once for each
 * group. */
dscomm_status_t dscomm_priv_stage_call(dscomm_group_t *group,
                                       dscomm_call_t *call);
/* Fails with ERR_UNSUPPORTED: this call cannot be staged. */
dscomm_status_t dscomm_priv_stage_refuse(const dscomm_group_t *group,
                                         const char *name);

#endif
