/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations as text, for sentences and logs. */
#include "config.h"
#include "lib/call/agree.h"
#include "lib/call/check.h"
#include "lib/schedule/header.h"
#include "lib/base/op.h"

#include <dscomm/backend.h>
#include <stdio.h>
#include <string.h>

/* The public call that a collective is a part of. */
static const char *const callers[] = {
    [-DSCOMM_ROOT_FINALIZE] = "dscomm_finalize",
    [-DSCOMM_ROOT_GROUP_NEW] = "dscomm_group_new",
    [-DSCOMM_ROOT_GROUP_SPLIT] = "dscomm_group_split",
    [-DSCOMM_ROOT_GROUP_MESH] = "dscomm_group_mesh",
};

const char *dscomm_priv_caller(int root)
{
    const int last = (int)(sizeof callers / sizeof callers[0]) - 1;

    return root < -1 && root >= -last ? callers[-root] : NULL;
}

const char *dscomm_coll_describe(const dscomm_coll_args_t *args, char *buffer,
                                 size_t size)
{
    static const uint8_t is_v[DSCOMM_COLL_COUNT] = {
        [DSCOMM_COLL_ALL_GATHER_V] = 1, [DSCOMM_COLL_REDUCE_SCATTER_V] = 1,
        [DSCOMM_COLL_GATHER_V] = 1,     [DSCOMM_COLL_SCATTER_V] = 1,
        [DSCOMM_COLL_ALL_TO_ALL_V] = 1,
    };
    const char *caller = dscomm_priv_caller(args->root);
    unsigned coll = (unsigned)args->coll;
    char op[DSCOMM_OP_TEXT + 2] = "", root[32] = "";

    if (args->op >= 0)
        snprintf(op, sizeof(op), ", %s", dscomm_priv_op_text(args));
    if (args->root >= 0)
        snprintf(root, sizeof(root), ", root %d", args->root);
    if (caller || args->coll == DSCOMM_COLL_BARRIER)
        snprintf(buffer, size, "%s() #%llu", caller ? caller : "barrier",
                 (unsigned long long)args->sequence);
    else
        snprintf(buffer, size, "%s(%scount %zu, %s%s%s) #%llu",
                 dscomm_coll_name((dscomm_coll_t)args->coll),
                 coll < DSCOMM_COLL_COUNT && is_v[coll] ? "own " : "",
                 args->count, dscomm_dtype_name((dscomm_dtype_t)args->dtype),
                 op, root, (unsigned long long)args->sequence);
    return buffer;
}

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
