/* SPDX-License-Identifier: BSD-3-Clause */
/* Recording calls between dscomm_coalesce_begin() and _end(). */
#ifndef LIB_COALESCE_H
#define LIB_COALESCE_H

#include "lib/work.h"

/* Add a call to the recording. */
dscomm_status_t dscomm_priv_coalesce_collective(dscomm_group_t *group,
                                                const dscomm_coll_args_t *args);
dscomm_status_t dscomm_priv_coalesce_message(dscomm_group_t *group,
                                             const dscomm_call_t *message);
/* ERR_STATE: the call named name cannot be recorded. */
dscomm_status_t dscomm_priv_coalesce_refuse(const dscomm_group_t *group,
                                            const char *name);
/* Forgets the recording, if there is one. */
void dscomm_priv_coalesce_drop(dscomm_group_t *group);

#endif
