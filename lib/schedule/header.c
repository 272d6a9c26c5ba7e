/* SPDX-License-Identifier: BSD-3-Clause */
/* Message headers as text, for sentences. */
#include "config.h"
#include "lib/schedule/header.h"
#include "lib/base/types.h"

#include <string.h>

/* 1 if the header is of several coalesced calls; it then has the fingerprint of
 * all. */
static int is_fused(const dscomm_header_t *header)
{
    return (header->coll == DSCOMM_COLL_ALL_REDUCE ||
            header->coll == DSCOMM_COLL_BROADCAST) &&
           header->op != DSCOMM_OP_USER &&
           header->fingerprint !=
               dscomm_priv_fingerprint(header->coll, header->dtype, header->op,
                                       header->root, (size_t)header->count);
}

void dscomm_priv_header_describe(const dscomm_header_t *header,
                                 uint64_t sequence, char *text, size_t size)
{
    const char *fused = "coalesced calls, together ";
    dscomm_coll_args_t args = {
        .coll = header->coll,
        .dtype = header->dtype,
        .op = header->op,
        .root = header->root,
        .count = header->count,
        .sequence = sequence,
    };

    if (is_fused(header)) {
        memcpy(text, fused, strlen(fused));
        text += strlen(fused);
        size -= strlen(fused);
    }
    dscomm_coll_describe(&args, text, size);
}
