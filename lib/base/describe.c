/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations as text, for sentences and logs. */
#include "config.h"
#include "lib/base/describe.h"
#include "lib/base/op.h"

#include <dscomm/backend.h>
#include <stdio.h>

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
