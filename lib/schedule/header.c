/* SPDX-License-Identifier: BSD-3-Clause */
/* Greetings as text, for sentences. */
#include "config.h"
#include "lib/schedule/header.h"
#include "lib/base/types.h"

#include <string.h>

/* Coalesced calls that go as one have a fingerprint of all of them. */
static int is_fused(const dscomm_greeting_t *greeting)
{
    return (greeting->coll == DSCOMM_COLL_ALL_REDUCE ||
            greeting->coll == DSCOMM_COLL_BROADCAST) &&
           greeting->op != DSCOMM_OP_USER &&
           greeting->fingerprint !=
               dscomm_priv_fingerprint(greeting->coll, greeting->dtype,
                                       greeting->op, greeting->root,
                                       (size_t)greeting->count);
}

void dscomm_priv_greeting_describe(const dscomm_greeting_t *greeting,
                                   uint64_t sequence, char *text, size_t size)
{
    const char *fused = "coalesced calls, together ";
    dscomm_coll_args_t args = {
        .coll = greeting->coll,
        .dtype = greeting->dtype,
        .op = greeting->op,
        .root = greeting->root,
        .count = greeting->count,
        .sequence = sequence,
    };

    if (is_fused(greeting)) {
        memcpy(text, fused, strlen(fused));
        text += strlen(fused);
        size -= strlen(fused);
    }
    dscomm_coll_describe(&args, text, size);
}
