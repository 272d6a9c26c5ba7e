/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a group with levels. A message goes by the level that has both
 * its ranks, and its request is one of that level's backend.
 *
 * A receive from any source must match messages of both levels in the order of
 * posting, and a posted receive cannot be taken back from a level without loss.
 * So if such receives are possible, all messages of the user go by
 * LEVEL_NETWORK. Receives of the core always name their source, so its messages
 * go by either level. */
#include "config.h"

#include "lib/schedule/levels.h"

/* Returns the level of message, and the peer's number in that level. */
static dscomm_level_t *message_route(dscomm_levels_t *levels,
                                     const dscomm_message_t *message,
                                     int *ret_peer)
{
    const dscomm_layout_t *layout = &levels->layout;
    const int peer = message->peer;

    *ret_peer = peer;
    if (peer < 0 || layout->node[peer] != layout->node[levels->rank] ||
        !levels->level[LEVEL_NODE].impl ||
        !(levels->direct || message->tag < DSCOMM_ANY_TAG))
        return &levels->level[LEVEL_NETWORK];
    *ret_peer = layout->local[peer];
    return &levels->level[LEVEL_NODE];
}

/* Returns the place in a request that has its level. */
static dscomm_level_t **level_of(const dscomm_levels_t *levels,
                                 const dscomm_request_t *request)
{
    return (void *)((char *)request + levels->level_at);
}

/* Returns the group's failure if there is one: the level itself may have been
 * revoked on behalf of another level, and does not know the culprit. */
static dscomm_status_t end_start(dscomm_levels_t *levels,
                                 dscomm_status_t status)
{
    dscomm_status_t ended =
        status < 0 ? dscomm_priv_levels_check(levels) : DSCOMM_OK;

    return ended < 0 ? ended : status;
}

dscomm_status_t dscomm_priv_levels_isend(void *impl,
                                         const dscomm_message_t *message,
                                         dscomm_request_t *request)
{
    dscomm_levels_t *levels = impl;
    dscomm_message_t own = *message;
    dscomm_level_t *level = message_route(levels, message, &own.peer);

    *level_of(levels, request) = level;
    return end_start(levels, level->ops.isend(level->impl, &own, request));
}

dscomm_status_t dscomm_priv_levels_irecv(void *impl,
                                         const dscomm_message_t *message,
                                         dscomm_request_t *request)
{
    dscomm_levels_t *levels = impl;
    dscomm_message_t own = *message;
    dscomm_level_t *level = message_route(levels, message, &own.peer);

    *level_of(levels, request) = level;
    if (!level->ops.expect)
        own.early = 0;
    return end_start(levels, level->ops.irecv(level->impl, &own, request));
}

void dscomm_priv_levels_cancel(void *impl, dscomm_request_t *request)
{
    const dscomm_level_t *level = *level_of(impl, request);

    level->ops.cancel(level->impl, request);
}

int dscomm_priv_levels_explain(void *impl, const dscomm_request_t *request,
                               char *text, size_t size)
{
    const dscomm_level_t *level = request ? *level_of(impl, request) : NULL;
    int rank = -1;

    if (level && level->ops.explain)
        rank = level->ops.explain(level->impl, request, text, size);
    return rank < 0 ? -1 : level->members[rank];
}

int dscomm_priv_levels_withdraw(void *impl, dscomm_request_t *request)
{
    const dscomm_level_t *level = *level_of(impl, request);

    return level->ops.withdraw(level->impl, request);
}

int dscomm_priv_levels_matched(void *impl, const dscomm_request_t *request)
{
    const dscomm_level_t *level = *level_of(impl, request);

    return level->ops.matched && level->ops.matched(level->impl, request);
}

void dscomm_priv_levels_expect(void *impl, dscomm_request_t *request)
{
    const dscomm_level_t *level = *level_of(impl, request);

    if (level->ops.expect)
        level->ops.expect(level->impl, request);
}

/* Messages of the core may come by both levels; for any source, the node's are
 * looked at here. */
static int node_probe(dscomm_levels_t *levels, const dscomm_message_t *wanted,
                      dscomm_request_t *found, void **ret_taken)
{
    const dscomm_level_t *node = &levels->level[LEVEL_NODE];

    if (!node->impl || wanted->peer >= 0 || wanted->tag >= DSCOMM_ANY_TAG ||
        !node->ops.probe(node->impl, wanted, found, ret_taken))
        return 0;
    found->source = node->members[found->source];
    return 1;
}

int dscomm_priv_levels_probe(void *impl, const dscomm_message_t *wanted,
                             dscomm_request_t *found, void **ret_taken)
{
    dscomm_levels_t *levels = impl;
    dscomm_message_t own = *wanted;
    dscomm_level_t *level = message_route(levels, wanted, &own.peer);

    if (node_probe(levels, wanted, found, ret_taken))
        return 1;
    if (!level->ops.probe(level->impl, &own, found, ret_taken))
        return 0;
    if (wanted->peer >= 0)
        found->source = wanted->peer;
    return 1;
}
