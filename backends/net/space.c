/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching: receives that wait for messages, and messages that wait for
 * receives. Both are in buckets by source and tag, so that a match takes the
 * same time however many there are. Receives of any source or tag are in a list
 * of their own; a number tells whether such a receive is older. */
#include "config.h"

#include "backends/net/engine.h"

static unsigned bucket_of(int peer, int tag)
{
    const uint64_t key = (uint64_t)(uint32_t)peer << 32 | (uint32_t)tag;

    return (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

G_STATIC_ASSERT(SPACE_BUCKETS == 1 << (64 - 58));

static bool tag_matches(int wanted, int tag)
{
    return wanted == tag || (wanted == DSCOMM_ANY_TAG && tag >= 0);
}

static bool is_wild(const request_t *receive)
{
    return receive->peer < 0 || receive->message.tag == DSCOMM_ANY_TAG;
}

static struct requests *posted_list(space_t *space, const request_t *receive)
{
    if (is_wild(receive))
        return &space->wild;
    return &space->posted[bucket_of(receive->peer, receive->message.tag)];
}

space_t *net_space(domain_t *domain, uint64_t context)
{
    space_t *space = domain->last_space;

    if (space && space->context == context)
        return space;
    space = g_hash_table_lookup(domain->spaces, &context);
    if (space)
        domain->last_space = space;
    if (space || g_hash_table_contains(domain->closed, &context))
        return space;
    space = g_try_new0(space_t, 1);
    if (!space)
        return NULL;
    space->left = g_try_malloc0((gsize)domain->ranks);
    if (!space->left) {
        g_free(space);
        return NULL;
    }
    space->context = context;
    for (int i = 0; i < SPACE_BUCKETS; i++) {
        TAILQ_INIT(&space->posted[i]);
        TAILQ_INIT(&space->arrived[i]);
    }
    TAILQ_INIT(&space->wild);
    TAILQ_INIT(&space->in_order);
    g_hash_table_insert(domain->spaces, &space->context, space);
    return space;
}

void net_space_free(gpointer data)
{
    space_t *space = data;
    arrival_t *arrival;

    while ((arrival = TAILQ_FIRST(&space->in_order)) != NULL) {
        net_arrival_remove(space, arrival);
        if (arrival->sink) {
            arrival->sink->wire.memory = NULL;
            arrival->sink->arrival = NULL;
        }
        g_free(arrival);
    }
    g_free(space->revoked);
    g_free(space->left);
    g_free(space);
}

void net_space_close(domain_t *domain, space_t *space)
{
    uint64_t *context = g_new(uint64_t, 1);
    const arrival_t *arrival;

    TAILQ_FOREACH (arrival, &space->in_order, in_order)
        if (!arrival->send && !arrival->sink)
            net_credit_return(domain, arrival->peer,
                              (uint64_t)MESSAGE_COST +
                                  (arrival->id ? 0 : arrival->bytes));
    *context = space->context;
    g_hash_table_add(domain->closed, context);
    domain->last_space = NULL;
    g_hash_table_remove(domain->spaces, &space->context);
}

void net_posted_add(space_t *space, request_t *request)
{
    request->order = ++request->engine->domain->order;
    request->state = REQUEST_POSTED;
    space->posted_count++;
    TAILQ_INSERT_TAIL(posted_list(space, request), request, link);
}

void net_posted_remove(space_t *space, request_t *request)
{
    space->posted_count--;
    TAILQ_REMOVE(posted_list(space, request), request, link);
}

void net_posted_move(space_t *space, request_t *from, request_t *to)
{
    TAILQ_INSERT_BEFORE(from, to, link);
    TAILQ_REMOVE(posted_list(space, from), from, link);
}

request_t *net_posted_take(space_t *space, int peer, int tag)
{
    request_t *exact, *wild;

    TAILQ_FOREACH (exact, &space->posted[bucket_of(peer, tag)], link)
        if (exact->peer == peer && exact->message.tag == tag)
            break;
    TAILQ_FOREACH (wild, &space->wild, link)
        if ((wild->peer < 0 || wild->peer == peer) &&
            tag_matches(wild->message.tag, tag))
            break;
    if (!exact || (wild && wild->order < exact->order))
        exact = wild;
    if (exact)
        net_posted_remove(space, exact);
    return exact;
}

arrival_t *net_arrival_find(const space_t *space, int peer, int tag)
{
    arrival_t *arrival;

    if (peer >= 0 && tag != DSCOMM_ANY_TAG) {
        TAILQ_FOREACH (arrival, &space->arrived[bucket_of(peer, tag)],
                       in_bucket)
            if (arrival->peer == peer && arrival->tag == tag &&
                !arrival->taken && !arrival->receive)
                break;
        return arrival;
    }
    TAILQ_FOREACH (arrival, &space->in_order, in_order)
        if ((peer < 0 || arrival->peer == peer) &&
            tag_matches(tag, arrival->tag) && !arrival->taken &&
            !arrival->receive)
            break;
    return arrival;
}

arrival_t *net_arrival_add(space_t *space, int peer, int tag, uint64_t bytes,
                           size_t room)
{
    arrival_t *arrival = g_try_malloc(sizeof *arrival + room);

    if (!arrival)
        return NULL;
    *arrival = (arrival_t){.peer = peer, .tag = tag, .bytes = bytes};
    TAILQ_INSERT_TAIL(&space->arrived[bucket_of(peer, tag)], arrival,
                      in_bucket);
    TAILQ_INSERT_TAIL(&space->in_order, arrival, in_order);
    return arrival;
}

void net_arrival_remove(space_t *space, arrival_t *arrival)
{
    TAILQ_REMOVE(&space->arrived[bucket_of(arrival->peer, arrival->tag)],
                 arrival, in_bucket);
    TAILQ_REMOVE(&space->in_order, arrival, in_order);
}
