/* SPDX-License-Identifier: BSD-3-Clause */
/* Recording calls between dscomm_coalesce_begin() and _end(). */
#ifndef LIB_COALESCE_H
#define LIB_COALESCE_H

#include "lib/work.h"

/* Adds call to the recording. */
dscomm_status_t dscomm_priv_coalesce_record(dscomm_group_t *group,
                                            const dscomm_call_t *call);
/* ERR_STATE: the call named name cannot be recorded. */
dscomm_status_t dscomm_priv_coalesce_refuse(const dscomm_group_t *group,
                                            const char *name);
/* Forgets the recording, if there is one. */
void dscomm_priv_coalesce_drop(dscomm_group_t *group);

#endif
