/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/call/group-new.h"

#include "lib/base/node.h"
#include "lib/base/op.h"
#include "lib/base/status.h"
#include "lib/call/dispatch.h"
#include "lib/rendezvous/processes.h"

#include <stdio.h>
#include <unistd.h>

/* The report that each rank sends to all after a mismatch. */
typedef struct {
    char who[DSCOMM_PROCESS_MAX];
    char what[128]; /* its call, with arguments */
} caller_t;

dscomm_status_t dscomm_priv_agree_gather(dscomm_group_t *group, int root,
                                         const void *send, void *recv,
                                         size_t size)
{
    dscomm_coll_args_t args = dscomm_priv_args(
        DSCOMM_COLL_ALL_GATHER, send, recv, size, size, DSCOMM_UINT8, -1, root);
    const dscomm_status_t status = dscomm_priv_dispatch(group, &args, NULL);

    /* The sentence of a mismatch names the public call already. */
    if (status == DSCOMM_OK || status == DSCOMM_ERR_MISMATCH)
        return status;
    return dscomm_fail(status, "%s on group '%s': %s", dscomm_priv_caller(root),
                       group->identity.name, dscomm_last_error());
}

static void caller_describe(const dscomm_group_t *group, const char *what,
                            caller_t *caller)
{
    char node[DSCOMM_NODE_MAX];

    dscomm_priv_node_name(node);
    dscomm_priv_process_describe(group->rank,
                                 group->identity.world_ranks[group->rank],
                                 getpid(), node, caller->who);
    g_strlcpy(caller->what, what, sizeof caller->what);
}

dscomm_status_t dscomm_priv_agree_fail(dscomm_group_t *group, int root, int odd,
                                       int other, int others, const char *what,
                                       const char *remedy)
{
    caller_t own = {0},
             *callers =
                 dscomm_priv_group_memory(group, dscomm_priv_caller(root),
                                          (size_t)group->size, sizeof *callers);
    char more[32] = "";
    dscomm_status_t status;

    if (!callers)
        return DSCOMM_ERR_NO_MEMORY;
    caller_describe(group, what, &own);
    if (others)
        snprintf(more, sizeof more, " and %d other%s", others,
                 others > 1 ? "s" : "");
    status = dscomm_priv_agree_gather(group, root, &own, callers, sizeof own);
    if (status == DSCOMM_OK)
        status = dscomm_fail(DSCOMM_ERR_MISMATCH,
                             "group '%s': %s called %s, but %s%s called %s; %s",
                             group->identity.name, callers[odd].who,
                             callers[odd].what, callers[other].who, more,
                             callers[other].what, remedy);
    dscomm_priv_buffer_drop(group, callers);
    return status;
}

static int hashes_count_alike(const uint64_t *hashes, int count, int rank)
{
    int alike = 0;

    for (int r = 0; r < count; r++)
        alike += hashes[r] == hashes[rank];
    return alike;
}

/* Fails with the first rank that differs from the majority, and the first rank
 * of the majority. */
static dscomm_status_t hashes_fail(dscomm_group_t *group, int root,
                                   const uint64_t *hashes, const char *what,
                                   const char *remedy)
{
    int most = 0, odd = 0, other = 0;

    for (int r = 0; r < group->size; r++) {
        const int alike = hashes_count_alike(hashes, group->size, r);

        if (alike > most)
            other = r;
        most = MAX(most, alike);
    }
    while (hashes[odd] == hashes[other])
        odd++;
    return dscomm_priv_agree_fail(group, root, odd, other, most - 1, what,
                                  remedy);
}

dscomm_status_t dscomm_priv_agree(dscomm_group_t *group, int root,
                                  uint64_t hash, const char *what,
                                  const char *remedy)
{
    uint64_t *hashes = dscomm_priv_group_memory(
        group, dscomm_priv_caller(root), (size_t)group->size, sizeof *hashes);
    dscomm_status_t status;

    if (!hashes)
        return DSCOMM_ERR_NO_MEMORY;
    status = dscomm_priv_agree_gather(group, root, &hash, hashes, sizeof hash);
    if (status == DSCOMM_OK &&
        hashes_count_alike(hashes, group->size, 0) < group->size)
        status = hashes_fail(group, root, hashes, what, remedy);
    dscomm_priv_buffer_drop(group, hashes);
    return status;
}
