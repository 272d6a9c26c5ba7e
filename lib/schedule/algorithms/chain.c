/* SPDX-License-Identifier: BSD-3-Clause */
/* Chain: from the root on, every rank forwards what it has received to the next
 * one, segment by segment; a reduction goes the other way.
 *
 * Cost: for n bytes in s segments s + p - 2 steps of n / s bytes, so about the
 * time of one message of n bytes where n is long. Extra memory: reduce some
 * segments. Source: Träff, Ripke, Siebert, Balaji, Thakur, Gropp, "A Pipelined
 * Algorithm for Large, Irregular All-Gather Problems", International Journal of
 * High Performance Computing Applications 24(1), 2010, section 3 (the
 * pipeline). */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/blocks.h"

#define SEGMENT ((size_t)64 << 10)
#define WINDOW 4

/* The neighbours towards the root and away from it; -1: none. */
typedef struct {
    int near, far;
} link_t;

static link_t find_link(const dscomm_plan_t *plan)
{
    const int number = wrap(plan->rank - plan->args->root, plan->ranks);

    return (link_t){number ? wrap(plan->rank - 1, plan->ranks) : -1,
                    number < plan->ranks - 1 ? (plan->rank + 1) % plan->ranks
                                             : -1};
}

void dscomm_priv_chain_broadcast(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t segments = count_pieces(args, args->count, SEGMENT);
    const link_t link = find_link(plan);

    dscomm_priv_plan_window(plan, WINDOW, 0);
    for (size_t i = 0; i < segments; i++) {
        piece_t segment = cut(args, args->count, segments, i);
        dscomm_place_t place = dscomm_priv_at(AT_RECV, segment.offset);

        dscomm_priv_plan_chain(plan);
        if (link.near >= 0) {
            dscomm_priv_plan_recv(plan, link.near, place, segment.bytes);
            dscomm_priv_plan_round(plan);
        }
        if (link.far >= 0)
            dscomm_priv_plan_send(plan, link.far, place, segment.bytes);
    }
}

static void reduce_segment(dscomm_plan_t *plan, const link_t *link,
                           const piece_t *segment, size_t room)
{
    const dscomm_place_t came = dscomm_priv_plan_slot(plan);
    dscomm_place_t own = dscomm_priv_at(AT_SEND, segment->offset);
    dscomm_place_t sum = link->near < 0
                             ? dscomm_priv_at(AT_RECV, segment->offset)
                             : dscomm_priv_beyond(came, room);

    if (plan->args->op == DSCOMM_PREMUL_SUM) {
        dscomm_priv_plan_load(plan, sum, own, segment->count);
        own = sum;
    }
    if (link->far >= 0) {
        dscomm_priv_plan_recv(plan, link->far, came, segment->bytes);
        dscomm_priv_plan_round(plan);
        dscomm_priv_plan_fold(plan, sum, own, came, segment->count,
                              link->near < 0);
        own = sum;
    }
    if (link->near >= 0)
        dscomm_priv_plan_send(plan, link->near, own, segment->bytes);
}

void dscomm_priv_chain_reduce(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t segments = count_pieces(args, args->count, SEGMENT);
    const size_t room = aligned(cut(args, args->count, segments, 0).bytes);
    const link_t link = find_link(plan);

    dscomm_priv_plan_window(plan, WINDOW, 2 * room);
    for (size_t i = 0; i < segments; i++) {
        piece_t segment = cut(args, args->count, segments, i);

        dscomm_priv_plan_chain(plan);
        reduce_segment(plan, &link, &segment, room);
    }
}
