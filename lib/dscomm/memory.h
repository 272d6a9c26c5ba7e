/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a group's backend moves without copies. Any memory works in every
 * call; this kind is faster where dscomm_group_capabilities() has
 * DSCOMM_CAP_ZERO_COPY. */
#ifndef DSCOMM_MEMORY_H
#define DSCOMM_MEMORY_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates size bytes, page aligned and zeroed, for buffers of operations on
 * group. Local. ERR_NO_MEMORY if the system has no more (pages are reserved at
 * once, not on first touch); ERR_ABORTED or another status if group has ended.
 * The memory stays valid until it or the group is freed. MT: group. */
DSCOMM_API dscomm_status_t dscomm_mem_alloc(dscomm_group_t *group, size_t size,
                                            void **ret_memory);

/* Frees memory that dscomm_mem_alloc() returned for this group. memory may be
 * NULL; any other pointer is ERR_INVALID. No operation may still use it. MT:
 * group. */
DSCOMM_API dscomm_status_t dscomm_mem_free(dscomm_group_t *group, void *memory);

#ifdef __cplusplus
}
#endif

#endif
