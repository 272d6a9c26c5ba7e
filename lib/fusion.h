/* SPDX-License-Identifier: BSD-3-Clause */
/* Fusion: small coalesced calls of one kind go as one, on a packed buffer. */
#ifndef LIB_FUSION_H
#define LIB_FUSION_H

#include "lib/work.h"

/* How many of the calls from calls[0] on can go as one; 1 where the first must
 * go alone. Equal on all ranks that make the same calls. */
size_t dscomm_priv_fusion_extent(const dscomm_call_t *calls, size_t count);

/* The one call for count calls, on a buffer with their inputs; NULL where
 * memory is short. */
dscomm_fusion_t *dscomm_priv_fusion_new(const dscomm_call_t *calls,
                                        size_t count, dscomm_call_t *ret_call);
/* Of the calls in it; 1 where it is NULL. */
size_t dscomm_priv_fusion_count(const dscomm_fusion_t *fusion);
/* Puts the results where the calls want them. */
void dscomm_priv_fusion_unpack(const dscomm_fusion_t *fusion);
void dscomm_priv_fusion_free(dscomm_fusion_t *fusion);

#endif
