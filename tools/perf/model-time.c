/* SPDX-License-Identifier: BSD-3-Clause */
/* The time of the model's schedules, see model.h: one rank carries out its
 * rounds, and all others do the same at the same moments. Messages of pieces
 * under way share the links equally. The processor does one thing at a time, in
 * order; no piece begins a round meanwhile. */
#include "config.h"

#include "tools/perf/model.h"

#include <math.h>

#define WINDOW_MOST 8

/* Links, and on each the ways in and out. */
enum { NEAR, FAR, WAYS = 2, LINKS = 4 };
enum { SENDS, ARRIVES, WORKS, ENDED };

/* A piece under way. */
typedef struct {
    size_t piece;
    guint round;
    int repeated, state;
    /* SENDS: seconds that messages need of each way of each link alone */
    double left[LINKS];
    double latency, until; /* after the messages; other states: their end */
} slot_t;

typedef struct {
    const perf_model_t *model;
    const GArray *rounds;
    size_t pieces, window;
    slot_t slots[WINDOW_MOST];
    double now, busy; /* busy: until when the processor works */
} simulation_t;

static const perf_round_t *slot_round(const simulation_t *sim,
                                      const slot_t *slot)
{
    return &g_array_index(sim->rounds, perf_round_t, slot->round);
}

/* Begins so many messages of a round on a link. */
static void slot_send(slot_t *slot, int which, const perf_link_t *link,
                      const perf_round_t *round, double messages, double share)
{
    const perf_cost_t *cost =
        round->ways == PERF_WAY_BOTH ? &link->both_ways : &link->one_way;
    const double time =
        messages * share * round->bytes * perf_cost_beta(cost, round->bytes) +
        MAX(messages - 1, 0) * link->gap;

    for (int way = 0; way < WAYS; way++)
        slot->left[which * WAYS + way] = round->ways & 1 << way ? time : 0;
    if (messages > 0)
        slot->latency = MAX(slot->latency, perf_cost_alpha(cost, round->bytes));
}

static void slot_begin(simulation_t *sim, slot_t *slot)
{
    const perf_round_t *round = slot_round(sim, slot);

    slot->state = SENDS;
    slot->latency = 0;
    slot_send(slot, NEAR, &sim->model->near, round, round->near, 1);
    slot_send(slot, FAR, &sim->model->far, round, round->far, round->share);
}

/* Gives the processor what the slot's messages have brought. */
static void slot_work(simulation_t *sim, slot_t *slot)
{
    const perf_round_t *round = slot_round(sim, slot);

    slot->state = WORKS;
    sim->busy = MAX(sim->busy, sim->now) + round->reduced * sim->model->gamma +
                round->copied * sim->model->delta;
    slot->until = sim->busy;
}

/* Begins the next round of the piece, or the slot's next piece. */
static void slot_next(simulation_t *sim, slot_t *slot)
{
    if (++slot->repeated >= slot_round(sim, slot)->repeat) {
        slot->repeated = 0;
        slot->round++;
    }
    if (slot->round == sim->rounds->len) {
        slot->round = 0;
        slot->piece += sim->window;
    }
    if (slot->piece < sim->pieces)
        slot_begin(sim, slot);
    else
        slot->state = ENDED;
}

/* Counts the slots that use a link. */
static double users(const simulation_t *sim, int link)
{
    double count = 0;

    for (size_t i = 0; i < sim->window; i++)
        count += sim->slots[i].state == SENDS && sim->slots[i].left[link] > 0;
    return count;
}

/* Returns the seconds until the slot's messages have left a link; 0: all have
 * left. */
static double slot_sending(const slot_t *slot, const double *shared)
{
    double time = INFINITY;

    for (int link = 0; link < LINKS; link++)
        if (slot->left[link] > 0)
            time = MIN(time, slot->left[link] * shared[link]);
    return isfinite(time) ? time : 0;
}

/* Returns the seconds until something changes; INFINITY: all have ended. */
static double time_ahead(const simulation_t *sim, const double *shared)
{
    double ahead = INFINITY;

    for (size_t i = 0; i < sim->window; i++) {
        const slot_t *slot = &sim->slots[i];

        if (slot->state == SENDS)
            ahead = MIN(ahead, slot_sending(slot, shared));
        else if (slot->state != ENDED)
            ahead = MIN(ahead, slot->until - sim->now);
    }
    return ahead;
}

/* Sends for so many seconds. What is left by rounding errors is sent, too. */
static void slot_send_on(slot_t *slot, double time, const double *shared)
{
    for (int link = 0; link < LINKS; link++)
        if (slot->left[link] > 0) {
            slot->left[link] -= time / shared[link];
            if (slot->left[link] < time * 1e-9)
                slot->left[link] = 0;
        }
}

static void slot_advance(simulation_t *sim, slot_t *slot, double time,
                         const double *shared)
{
    if (slot->state == SENDS) {
        slot_send_on(slot, time, shared);
        if (slot_sending(slot, shared) > 0)
            return;
        slot->state = ARRIVES;
        slot->until = sim->now + slot->latency;
    }
    if (slot->state == ARRIVES && slot->until <= sim->now)
        slot_work(sim, slot);
    if (slot->state == WORKS && slot->until <= sim->now)
        slot_next(sim, slot);
}

/* Returns the time when all pieces have gone through the rounds. */
static double rounds_time(const perf_model_t *model, const GArray *rounds,
                          size_t pieces, size_t window)
{
    simulation_t sim = {
        .model = model, .rounds = rounds, .pieces = pieces, .window = window};
    double shared[LINKS], ahead;

    for (size_t i = 0; i < window; i++) {
        sim.slots[i].piece = i;
        sim.slots[i].state = ENDED;
        if (i < pieces)
            slot_begin(&sim, &sim.slots[i]);
    }
    while (true) {
        for (int link = 0; link < LINKS; link++)
            shared[link] = users(&sim, link);
        ahead = time_ahead(&sim, shared);
        if (!isfinite(ahead))
            return sim.now;
        sim.now += ahead;
        for (size_t i = 0; i < window; i++)
            slot_advance(&sim, &sim.slots[i], ahead, shared);
    }
}

double perf_model_time(const perf_model_t *model, int coll,
                       const char *algorithm, const perf_layout_t *layout,
                       double bytes)
{
    perf_schedule_t schedule;
    double time;

    if (!perf_schedule_init(&schedule, coll, algorithm, layout, bytes))
        return NAN;
    time = rounds_time(model, schedule.rounds, schedule.pieces,
                       MIN(schedule.window, WINDOW_MOST)) +
           rounds_time(model, schedule.tail, schedule.tail->len > 0, 1);
    perf_schedule_clear(&schedule);
    return time;
}
