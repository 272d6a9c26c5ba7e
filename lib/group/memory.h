/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a group has handed out. */
#ifndef LIB_MEMORY_H
#define LIB_MEMORY_H

#include "lib/group/group.h"

/* Gives everything back; the impl is still open. */
void dscomm_priv_memory_release(dscomm_group_t *group);
/* Forgets everything, and touches none of it. */
void dscomm_priv_memory_destroy(dscomm_group_t *group);

#endif
