/* SPDX-License-Identifier: BSD-3-Clause */
/* Building schedules. */
#include "config.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/algorithm.h"

#include <string.h>

#define ALIGNED(bytes) (((bytes) + 63) & ~(size_t)63)
#define SCRATCH_MOST (SIZE_MAX / 2 & ~(size_t)63) /* more than any memory */

static dscomm_step_t *step_at(const dscomm_plan_t *plan, guint index)
{
    return (dscomm_step_t *)plan->steps.data + index;
}

static guint chain_start(const dscomm_plan_t *plan)
{
    return ((uint32_t *)plan->chains.data)[plan->chains.len - 1];
}

/* Translates a part's place to the whole's. It has no owner, because the whole
 * has already applied the factors of PREMUL_SUM. */
static dscomm_place_t translate(const dscomm_plan_t *plan, dscomm_place_t place)
{
    if (!plan->part)
        return place;
    place.owner = -1;
    if (place.at == AT_SEND || place.at == AT_RECV) {
        const dscomm_place_t *buffer =
            place.at == AT_SEND ? &plan->part->send : &plan->part->recv;

        place.at = buffer->at;
        place.offset += buffer->offset;
    }
    return place;
}

static void plan_add_step(dscomm_plan_t *plan, const dscomm_step_t *step)
{
    dscomm_step_t *own = dscomm_priv_array_add(&plan->steps, sizeof *own);

    if (!own)
        return;
    *own = *step;
    own->place = translate(plan, own->place);
}

static void grow_scratch(dscomm_plan_t *plan, size_t bytes)
{
    if (bytes > SCRATCH_MOST - plan->scratch)
        plan->scratch = SCRATCH_MOST;
    else
        plan->scratch += ALIGNED(bytes);
}

/* Returns this chain's slot. Slots lie after the rest of the scratch, whose
 * size is known only at the end; plan_finish() then moves them. */
static dscomm_place_t find_slot(const dscomm_plan_t *plan)
{
    const uint32_t chain = plan->chains.len - 1;

    return dscomm_priv_at(AT_COUNT + (int)(chain % plan->window), 0);
}

dscomm_place_t dscomm_priv_plan_room(dscomm_plan_t *plan, size_t bytes)
{
    const dscomm_place_t place =
        dscomm_priv_beyond(find_slot(plan), plan->used);

    bytes = MIN(bytes, SCRATCH_MOST);
    plan->used = MIN(plan->used + ALIGNED(bytes), SCRATCH_MOST);
    plan->slot = MAX(plan->slot, plan->used);
    return place;
}

dscomm_place_t dscomm_priv_plan_scratch(dscomm_plan_t *plan, size_t bytes)
{
    dscomm_place_t place = dscomm_priv_at(AT_SCRATCH, plan->scratch);

    if (plan->part)
        return dscomm_priv_plan_room(plan, bytes);
    grow_scratch(plan, bytes);
    return place;
}

/* The chains of a part run one after the other. */
void dscomm_priv_plan_window(dscomm_plan_t *plan, uint32_t window, size_t bytes)
{
    g_assert(window && window <= WINDOW_MOST);
    if (plan->part) {
        plan->part_slot = dscomm_priv_plan_room(plan, bytes);
        return;
    }
    plan->window = window;
    plan->slot = ALIGNED(bytes);
}

static void add_chain(dscomm_plan_t *plan, uint32_t start)
{
    uint32_t *chain = dscomm_priv_array_add(&plan->chains, sizeof *chain);

    if (chain)
        *chain = start;
}

void dscomm_priv_plan_chain(dscomm_plan_t *plan)
{
    uint32_t start = plan->steps.len;

    dscomm_priv_plan_round(plan);
    if (plan->part)
        return;
    g_assert(plan->chained || !start);
    if (plan->chained)
        add_chain(plan, start);
    plan->chained = 1;
    plan->used = 0;
}

dscomm_place_t dscomm_priv_plan_slot(const dscomm_plan_t *plan)
{
    return plan->part ? plan->part_slot : find_slot(plan);
}

void dscomm_priv_plan_part(dscomm_plan_t *plan, const dscomm_part_t *part,
                           const dscomm_algorithm_t *algorithm,
                           const dscomm_coll_args_t *args)
{
    const dscomm_plan_t whole = *plan;

    dscomm_priv_plan_round(plan);
    plan->args = args;
    plan->rank = part->self;
    plan->ranks = part->count;
    plan->part = part;
    algorithm->build(plan);
    dscomm_priv_plan_round(plan);
    plan->args = whole.args;
    plan->rank = whole.rank;
    plan->ranks = whole.ranks;
    plan->part = whole.part;
    plan->used = whole.used;
}

void dscomm_priv_plan_round(dscomm_plan_t *plan)
{
    if (plan->steps.len > chain_start(plan))
        step_at(plan, plan->steps.len - 1)->last = 1;
    plan->most_messages = MAX(plan->most_messages, plan->round_messages);
    plan->round_messages = 0;
}

static void message(dscomm_plan_t *plan, dscomm_step_t step, int32_t *first)
{
    if (plan->part)
        step.peer = plan->part->members[step.peer];
    step.has_header = first[step.peer] < 0;
    plan->round_messages++;
    if (step.has_header) {
        dscomm_step_t header = step;

        first[step.peer] = (int32_t)plan->steps.len;
        step.has_header = step.bytes <= plan->header_most;
        if (!step.has_header) {
            header.bytes = 0;
            plan_add_step(plan, &header);
            plan->round_messages++;
        }
    }
    plan_add_step(plan, &step);
    if (!plan->steps.bad)
        step_at(plan, (guint)first[step.peer])->total += step.bytes;
}

void dscomm_priv_plan_send(dscomm_plan_t *plan, int peer, dscomm_place_t from,
                           size_t bytes)
{
    message(plan,
            (dscomm_step_t){
                .kind = STEP_SEND, .peer = peer, .place = from, .bytes = bytes},
            plan->first_send);
}

void dscomm_priv_plan_recv(dscomm_plan_t *plan, int peer, dscomm_place_t to,
                           size_t bytes)
{
    message(plan,
            (dscomm_step_t){
                .kind = STEP_RECV, .peer = peer, .place = to, .bytes = bytes},
            plan->first_recv);
}

static uint32_t add_sources(dscomm_plan_t *plan, const dscomm_place_t *from,
                            uint32_t nfrom)
{
    uint32_t first = plan->sources.len;

    for (uint32_t i = 0; i < nfrom; i++) {
        dscomm_place_t *place =
            dscomm_priv_array_add(&plan->sources, sizeof *place);

        if (place)
            *place = translate(plan, from[i]);
    }
    plan->most_sources = MAX(plan->most_sources, nfrom);
    return first;
}

void dscomm_priv_plan_copy(dscomm_plan_t *plan, dscomm_place_t to,
                           dscomm_place_t from, size_t bytes)
{
    dscomm_step_t step = {.kind = STEP_COPY, .place = to, .bytes = bytes};

    if (!bytes)
        return;
    step.source = add_sources(plan, &from, 1);
    step.nsources = 1;
    plan_add_step(plan, &step);
}

void dscomm_priv_plan_reduce(dscomm_plan_t *plan, dscomm_place_t to,
                             const dscomm_place_t *from, uint32_t nfrom,
                             size_t count, int final)
{
    dscomm_step_t step = {
        .kind = STEP_REDUCE,
        .place = to,
        .bytes = count,
        .nsources = nfrom,
        .final = (uint8_t)(final && (!plan->part || plan->part->final))};

    if (!count)
        return;
    step.source = add_sources(plan, from, nfrom);
    plan_add_step(plan, &step);
}

void dscomm_priv_plan_fold(dscomm_plan_t *plan, dscomm_place_t to,
                           dscomm_place_t a, dscomm_place_t b, size_t count,
                           int final)
{
    const dscomm_place_t from[] = {a, b};

    dscomm_priv_plan_reduce(plan, to, from, 2, count, final);
}

/* The factors get a place when the first one is used. */
dscomm_place_t dscomm_priv_plan_factor(dscomm_plan_t *plan, int rank)
{
    if (!plan->factors)
        plan->factors =
            dscomm_priv_plan_scratch(plan, (size_t)plan->ranks * sizeof(double))
                .offset;
    return dscomm_priv_at(AT_SCRATCH,
                          plan->factors + (size_t)rank * sizeof(double));
}

void dscomm_priv_plan_load(dscomm_plan_t *plan, dscomm_place_t to,
                           dscomm_place_t from, size_t count)
{
    if (plan->args->op != DSCOMM_PREMUL_SUM) {
        dscomm_priv_plan_copy(plan, to, from, count * plan->args->element);
        return;
    }
    dscomm_priv_plan_factor(plan, plan->rank);
    from = dscomm_priv_input(from, plan->rank);
    dscomm_priv_plan_reduce(plan, to, &from, 1, count, 0);
}

void dscomm_priv_plan_send_factor(dscomm_plan_t *plan, int peer)
{
    if (plan->args->op == DSCOMM_PREMUL_SUM)
        dscomm_priv_plan_send(plan, peer,
                              dscomm_priv_plan_factor(plan, plan->rank),
                              sizeof(double));
}

void dscomm_priv_plan_recv_factor(dscomm_plan_t *plan, int peer)
{
    if (plan->args->op == DSCOMM_PREMUL_SUM)
        dscomm_priv_plan_recv(plan, peer, dscomm_priv_plan_factor(plan, peer),
                              sizeof(double));
}

/* Makes room for message headers and the longest message after them, because
 * the message that arrives may be that of another call. */
static void add_stages(dscomm_plan_t *plan)
{
    for (guint i = 0; i < plan->steps.len; i++) {
        dscomm_step_t *step = step_at(plan, i);
        size_t room = step->kind == STEP_SEND ? step->bytes : plan->header_most;

        if (step->has_header)
            step->stage =
                dscomm_priv_plan_scratch(plan, HEADER_WHOLE + room).offset;
    }
}

static void plan_move(const dscomm_plan_t *plan, dscomm_place_t *place,
                      size_t slots)
{
    if (place->at < AT_COUNT)
        return;
    place->offset += slots + (size_t)(place->at - AT_COUNT) * plan->slot;
    place->at = AT_SCRATCH;
}

static void add_slots(dscomm_plan_t *plan)
{
    size_t slots = plan->scratch;

    for (guint i = 0; i < plan->steps.len; i++)
        plan_move(plan, &step_at(plan, i)->place, slots);
    for (guint i = 0; i < plan->sources.len; i++)
        plan_move(plan, (dscomm_place_t *)plan->sources.data + i, slots);
    for (uint32_t i = 0; i < plan->window; i++)
        grow_scratch(plan, plan->slot);
}

static void set_kernels(dscomm_schedule_t *schedule,
                        const dscomm_coll_args_t *args)
{
    dscomm_dtype_t dtype = (dscomm_dtype_t)args->dtype;
    dscomm_op_t op = (dscomm_op_t)args->op;

    if (args->op < 0)
        return;
    schedule->final = dscomm_reduce_kernel(dtype, op);
    schedule->partial = op == DSCOMM_AVG
                            ? dscomm_reduce_kernel(dtype, DSCOMM_SUM)
                            : schedule->final;
}

static void set_header(dscomm_schedule_t *schedule,
                       const dscomm_coll_args_t *args)
{
    schedule->header = (dscomm_header_t){
        .fingerprint = args->fingerprint,
        .coll = (uint8_t)args->coll,
        .dtype = (uint8_t)args->dtype,
        .op = (int8_t)args->op,
        .root = args->root,
        .count = args->count,
    };
}

static int is_bad(const dscomm_plan_t *plan)
{
    return plan->bad || plan->steps.bad || plan->chains.bad ||
           plan->sources.bad;
}

static dscomm_schedule_t *plan_finish(dscomm_plan_t *plan,
                                      const dscomm_algorithm_t *algorithm)
{
    dscomm_schedule_t *schedule = calloc(1, sizeof *schedule);

    dscomm_priv_plan_round(plan);
    plan->window = MIN(plan->window, plan->chains.len);
    add_chain(plan, plan->steps.len);
    if (!schedule || is_bad(plan)) {
        free(schedule);
        return NULL;
    }
    add_stages(plan);
    add_slots(plan);
    schedule->algorithm = algorithm;
    schedule->rank = plan->rank;
    schedule->ranks = plan->ranks;
    schedule->nchains = plan->chains.len - 1;
    schedule->window = plan->window;
    schedule->most_messages = plan->most_messages * schedule->window;
    schedule->most_sources = plan->most_sources;
    schedule->bytes = plan->steps.len * sizeof(dscomm_step_t) +
                      plan->chains.len * sizeof(uint32_t) +
                      plan->sources.len * sizeof(dscomm_place_t);
    schedule->scratch = plan->scratch;
    schedule->factors = plan->factors;
    schedule->steps = g_steal_pointer(&plan->steps.data);
    schedule->chains = g_steal_pointer(&plan->chains.data);
    schedule->sources = g_steal_pointer(&plan->sources.data);
    set_kernels(schedule, plan->args);
    set_header(schedule, plan->args);
    return schedule;
}

/* Writes the steps of a single rank. Algorithms assume that there are others.
 */
static void reduce_alone(dscomm_plan_t *plan)
{
    const dscomm_place_t own =
        dscomm_priv_input(dscomm_priv_at(AT_SEND, 0), plan->rank);

    if (plan->args->op == DSCOMM_PREMUL_SUM)
        dscomm_priv_plan_factor(plan, plan->rank);
    dscomm_priv_plan_reduce(plan, dscomm_priv_at(AT_RECV, 0), &own, 1,
                            plan->args->count, 1);
}

void *dscomm_priv_plan_memory(dscomm_plan_t *plan, size_t count, size_t size)
{
    void *memory = calloc(count, size);

    plan->bad |= !memory;
    return memory;
}

/* Returns an array of -1 for each rank. */
static int32_t *none_yet(dscomm_plan_t *plan)
{
    const size_t ranks = (size_t)plan->ranks;
    int32_t *first = dscomm_priv_plan_memory(plan, ranks, sizeof *first);

    if (first)
        memset(first, -1, ranks * sizeof *first);
    return first;
}

dscomm_schedule_t *dscomm_priv_schedule_new(const dscomm_algorithm_t *algorithm,
                                            const dscomm_coll_args_t *args,
                                            int rank, int ranks,
                                            const dscomm_nodes_t *nodes,
                                            dscomm_choose_fn choose)
{
    dscomm_schedule_t *schedule = NULL;
    dscomm_plan_t plan = {
        .args = args,
        .rank = rank,
        .ranks = ranks,
        .header_most = dscomm_priv_header_most(ranks),
        .nodes = nodes,
        .choose = choose,
        .window = 1,
        .scratch = 64, /* so that no offset is 0 */
    };

    add_chain(&plan, 0);
    plan.first_send = none_yet(&plan);
    plan.first_recv = none_yet(&plan);
    if (!is_bad(&plan)) {
        if (ranks == 1 && args->op >= 0)
            reduce_alone(&plan);
        else
            algorithm->build(&plan);
        schedule = plan_finish(&plan, algorithm);
    }
    free(plan.first_send);
    free(plan.first_recv);
    dscomm_priv_array_clear(&plan.steps);
    dscomm_priv_array_clear(&plan.chains);
    dscomm_priv_array_clear(&plan.sources);
    return schedule;
}

void dscomm_priv_schedule_free(dscomm_schedule_t *schedule)
{
    if (!schedule)
        return;
    free(schedule->steps);
    free(schedule->chains);
    free(schedule->sources);
    free(schedule);
}
