/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: each goes by the level that joins its two ranks.
 *
 * A receive from any source must be matched in the order of posting with
 * messages of both, and a receive once posted cannot be taken back from a level
 * without loss. So where such receives are possible, what the user sends goes
 * by FLAT, whoever it is for; the core's own messages always name their
 * source. */
#include "config.h"

#include "backends/two-level/two-level.h"

/* The level, and peer's number in it. */
static two_level_t *route(two_t *two, const dscomm_message_t *message,
                          int *ret_peer)
{
    const int peer = message->peer;

    *ret_peer = peer;
    if (two->only)
        return two->only;
    if (peer < 0 || two->node[peer] != two->node[two->rank] ||
        !two->levels[TWO_INSIDE].ops || !(two->direct || message->tag < -1))
        return &two->levels[TWO_FLAT];
    *ret_peer = two->local[peer];
    return &two->levels[TWO_INSIDE];
}

/* The number of a level's rank in the group. */
static int source_of(const two_t *two, const two_level_t *level, int source)
{
    if (two->only || level != &two->levels[TWO_INSIDE] || source < 0)
        return source;
    return two->order[two->first[two->node[two->rank]] + source];
}

/* A rank that has left because the group had ended told its level of that
 * first. */
static dscomm_status_t status_of(two_t *two, const dscomm_request_t *inner)
{
    dscomm_status_t ended = DSCOMM_OK;

    if (inner->status == DSCOMM_ERR_PEER_FAILED)
        ended = two_status(two, NULL, 0);
    return ended ? ended : inner->status;
}

static void complete(two_t *two, two_request_t *request)
{
    const dscomm_request_t *inner = request->inner;
    dscomm_status_t status = status_of(two, inner);

    request->head.source = source_of(two, request->level, inner->source);
    request->head.tag = inner->tag;
    request->head.bytes = inner->bytes;
    if (status == DSCOMM_ERR_PEER_FAILED) {
        two->failed = request;
        two_level_explain(two, request->level, inner, two->why,
                          sizeof two->why);
    }
    two_request_give(request->level, request->inner);
    request->inner = NULL;
    request->head.status = status;
}

static dscomm_status_t start(two_t *two, const dscomm_message_t *message,
                             two_request_t *request, int receive)
{
    dscomm_message_t inner = *message;
    two_level_t *level = route(two, message, &inner.peer);
    dscomm_status_t status = two_check(two);

    if (status < 0)
        return status;
    if (two->failed == request)
        two->failed = NULL;
    request->collective = 0;
    request->level = level;
    request->inner = two_request_take(level);
    status = (receive ? level->ops->irecv
                      : level->ops->isend)(level->impl, &inner, request->inner);
    if (status < 0) {
        two_request_give(level, request->inner);
        return status;
    }
    if (request->inner->status != DSCOMM_IN_PROGRESS) {
        complete(two, request);
        return DSCOMM_OK;
    }
    request->next = two->messages;
    two->messages = request;
    return DSCOMM_OK;
}

dscomm_status_t two_isend(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *request)
{
    return start(impl, message, (two_request_t *)request, 0);
}

dscomm_status_t two_irecv(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *request)
{
    return start(impl, message, (two_request_t *)request, 1);
}

dscomm_status_t two_send(void *impl, const dscomm_message_t *message)
{
    const two_level_t *only = ((two_t *)impl)->only;

    return only->ops->send(only->impl, message);
}

dscomm_status_t two_recv(void *impl, const dscomm_message_t *message,
                         dscomm_request_t *request)
{
    two_level_t *only = ((two_t *)impl)->only;
    dscomm_request_t *inner = two_request_take(only);
    dscomm_status_t status = only->ops->recv(only->impl, message, inner);

    request->source = inner->source;
    request->tag = inner->tag;
    request->bytes = inner->bytes;
    request->status = inner->status;
    two_request_give(only, inner);
    return status;
}

unsigned two_messages_scan(two_t *two)
{
    two_request_t **link = &two->messages, *request;
    unsigned completed = 0;

    while ((request = *link)) {
        if (request->inner->status == DSCOMM_IN_PROGRESS) {
            link = &request->next;
            continue;
        }
        *link = request->next;
        complete(two, request);
        completed++;
    }
    return completed;
}

/* Levels on which nothing is started are looked at rarely. */
int two_probe(void *impl, const dscomm_message_t *wanted,
              dscomm_request_t *found, void **ret_taken)
{
    two_t *two = impl;
    dscomm_message_t inner = *wanted;
    two_level_t *level = route(two, wanted, &inner.peer);

    level->ops->progress(level->impl);
    if (!level->ops->probe(level->impl, &inner, found, ret_taken))
        return 0;
    found->source = source_of(two, level, found->source);
    return 1;
}

/* Removes request from the messages; 0 where it is none of them. */
static int forget(two_t *two, const two_request_t *request)
{
    two_request_t **link = &two->messages;

    while (*link && *link != request)
        link = &(*link)->next;
    if (!*link)
        return 0;
    *link = request->next;
    return 1;
}

int two_withdraw(void *impl, dscomm_request_t *head)
{
    two_request_t *request = (two_request_t *)head;
    two_level_t *level = request->level;

    if (!request->inner || request->inner->status != DSCOMM_IN_PROGRESS ||
        !level->ops->withdraw(level->impl, request->inner))
        return 0;
    forget(impl, request);
    two_request_give(level, request->inner);
    request->inner = NULL;
    return 1;
}

int two_matched(void *impl, const dscomm_request_t *head)
{
    const two_request_t *request = (const two_request_t *)head;
    const two_level_t *level = request->level;

    (void)impl;
    return request->inner && request->inner->status == DSCOMM_IN_PROGRESS &&
           level->ops->matched &&
           level->ops->matched(level->impl, request->inner);
}

/* A request that its level has completed meanwhile no longer belongs to the
 * level. */
void two_message_cancel(two_t *two, two_request_t *request)
{
    if (!forget(two, request))
        return;
    if (request->inner->status == DSCOMM_IN_PROGRESS) {
        request->inner->never_sent = request->head.never_sent;
        request->level->ops->cancel(request->level->impl, request->inner);
        request->head.held = request->inner->held;
    }
    two_request_give(request->level, request->inner);
    request->inner = NULL;
}
