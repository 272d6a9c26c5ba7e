/* SPDX-License-Identifier: BSD-3-Clause */
/* Staging: a call on buffers of a device is made on host memory in their
 * place. */
#ifndef LIB_STAGE_H
#define LIB_STAGE_H

#include "lib/device/device.h"
#include "lib/work/work.h"

/* 1 where call has a buffer of a device. */
int dscomm_priv_stage_wanted(const dscomm_group_t *group,
                             const dscomm_call_t *call);
/* For such a call: puts host memory into it, with a copy of what it sends, and
 * call->bounce, which whoever has call must finish and free; or nothing where
 * the backend takes it as it is, and then what the device has under way is
 * complete. A collective that fails here ends the group. Tells the log, once
 * for each group. */
dscomm_status_t dscomm_priv_stage_call(dscomm_group_t *group,
                                       dscomm_call_t *call);
/* Where it cannot be staged: ERR_UNSUPPORTED. */
dscomm_status_t dscomm_priv_stage_refuse(const dscomm_group_t *group,
                                         const char *name);

#endif
