/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of operations, see perf-operations.h. */
#include "config.h"

#include "tools/perf/calls.h"
#include "tools/perf/operations.h"

#include <string.h>

/* nccl-tests' factors, for n ranks. */
static double bus_one(double n)
{
    (void)n;
    return 1;
}

static double bus_others(double n)
{
    return (n - 1) / n;
}

static double bus_twice(double n)
{
    return 2 * (n - 1) / n;
}

/* Per rank, (reads + writes) / 2 of the row's bytes. */
static double copied_all(double n, perf_place_t place)
{
    (void)n;
    (void)place;
    return 1;
}

static double copied_from_one(double n, perf_place_t place)
{
    (void)place;
    return (1 + (n - 1)) / (2 * n);
}

static double copied_reduced(double n, perf_place_t place)
{
    (void)place;
    return (n + 1) / (2 * n);
}

static double copied_gathered(double n, perf_place_t place)
{
    return (1 + (place == PERF_IN_PLACE ? n - 1 : n)) / (2 * n);
}

static double copied_once(double n, perf_place_t place)
{
    return (place == PERF_IN_PLACE ? (n - 1) / n : 1) / n;
}

static double copied_never(double n, perf_place_t place)
{
    (void)n;
    (void)place;
    return 0;
}

#define OUT_ONLY                                                               \
    {                                                                          \
        TRUE, FALSE                                                            \
    }
#define IN_ONLY                                                                \
    {                                                                          \
        FALSE, TRUE                                                            \
    }
#define BOTH                                                                   \
    {                                                                          \
        TRUE, TRUE                                                             \
    }

static const perf_operation_t operations[] = {
    {.name = "all_reduce",
     .coll = DSCOMM_COLL_ALL_REDUCE,
     .summary = "everyone gets the reduction",
     .run = perf_run_all_reduce,
     .run_premul = perf_run_all_reduce_premul,
     .send = PERF_WHOLE,
     .recv = PERF_WHOLE,
     .gets = PERF_GETS_REDUCED,
     .reduces = TRUE,
     .places = BOTH,
     .works = TRUE,
     .bus = bus_twice,
     .copied = copied_all},
    {.name = "reduce",
     .coll = DSCOMM_COLL_REDUCE,
     .summary = "the root gets the reduction",
     .run = perf_run_reduce,
     .run_premul = perf_run_reduce_premul,
     .send = PERF_WHOLE,
     .recv = PERF_WHOLE_ON_ROOT,
     .gets = PERF_GETS_REDUCED_ON_ROOT,
     .reduces = TRUE,
     .rooted = TRUE,
     .places = BOTH,
     .works = TRUE,
     .bus = bus_one,
     .copied = copied_reduced},
    {.name = "reduce_scatter",
     .coll = DSCOMM_COLL_REDUCE_SCATTER,
     .summary = "everyone gets a part of the reduction",
     .run = perf_run_reduce_scatter,
     .run_premul = perf_run_reduce_scatter_premul,
     .send = PERF_WHOLE,
     .recv = PERF_PART,
     .gets = PERF_GETS_REDUCED_PART,
     .reduces = TRUE,
     .divided = TRUE,
     .places = BOTH,
     .works = TRUE,
     .bus = bus_others,
     .copied = copied_reduced},
    {.name = "reduce_scatter_v",
     .coll = DSCOMM_COLL_REDUCE_SCATTER_V,
     .summary = "the same, with parts of different sizes",
     .run = perf_run_reduce_scatter_v,
     .send = PERF_WHOLE,
     .recv = PERF_PART,
     .gets = PERF_GETS_REDUCED_PART,
     .reduces = TRUE,
     .uneven = TRUE,
     .divided = TRUE,
     .places = BOTH,
     .works = TRUE,
     .bus = bus_others,
     .copied = copied_reduced},
    {.name = "broadcast",
     .coll = DSCOMM_COLL_BROADCAST,
     .summary = "everyone gets the root's elements",
     .run = perf_run_broadcast,
     .send = PERF_NOTHING,
     .recv = PERF_WHOLE,
     .gets = PERF_GETS_ROOT,
     .rooted = TRUE,
     .places = IN_ONLY,
     .works = TRUE,
     .bus = bus_one,
     .copied = copied_from_one},
    {.name = "broadcast_blob",
     .coll = -1,
     .summary = "the same, with a length only the root knows",
     .run = perf_run_broadcast_blob,
     .send = PERF_WHOLE_ON_ROOT,
     .recv = PERF_WHOLE,
     .gets = PERF_GETS_ROOT,
     .rooted = TRUE,
     .places = OUT_ONLY,
     .bus = bus_one,
     .copied = copied_from_one},
    {.name = "all_gather",
     .coll = DSCOMM_COLL_ALL_GATHER,
     .summary = "everyone gets everyone's elements",
     .run = perf_run_all_gather,
     .send = PERF_PART,
     .recv = PERF_WHOLE,
     .gets = PERF_GETS_ALL,
     .divided = TRUE,
     .places = BOTH,
     .works = TRUE,
     .bus = bus_others,
     .copied = copied_gathered},
    {.name = "all_gather_v",
     .coll = DSCOMM_COLL_ALL_GATHER_V,
     .summary = "the same, with parts of different sizes",
     .run = perf_run_all_gather_v,
     .send = PERF_PART,
     .recv = PERF_WHOLE,
     .gets = PERF_GETS_ALL,
     .uneven = TRUE,
     .divided = TRUE,
     .places = BOTH,
     .works = TRUE,
     .bus = bus_others,
     .copied = copied_gathered},
    {.name = "all_gather_blob",
     .coll = -1,
     .summary = "the same, with lengths only their owners know",
     .run = perf_run_all_gather_blob,
     .send = PERF_PART,
     .recv = PERF_WHOLE,
     .gets = PERF_GETS_ALL,
     .uneven = TRUE,
     .divided = TRUE,
     .places = OUT_ONLY,
     .bus = bus_others,
     .copied = copied_gathered},
    {.name = "gather",
     .coll = DSCOMM_COLL_GATHER,
     .summary = "the root gets everyone's elements",
     .run = perf_run_gather,
     .send = PERF_PART,
     .recv = PERF_WHOLE_ON_ROOT,
     .gets = PERF_GETS_ALL_ON_ROOT,
     .rooted = TRUE,
     .divided = TRUE,
     .places = BOTH,
     .works = TRUE,
     .bus = bus_others,
     .copied = copied_once},
    {.name = "gather_v",
     .coll = DSCOMM_COLL_GATHER_V,
     .summary = "the same, with parts of different sizes",
     .run = perf_run_gather_v,
     .send = PERF_PART,
     .recv = PERF_WHOLE_ON_ROOT,
     .gets = PERF_GETS_ALL_ON_ROOT,
     .rooted = TRUE,
     .uneven = TRUE,
     .divided = TRUE,
     .places = BOTH,
     .works = TRUE,
     .bus = bus_others,
     .copied = copied_once},
    {.name = "scatter",
     .coll = DSCOMM_COLL_SCATTER,
     .summary = "everyone gets a part of the root's elements",
     .run = perf_run_scatter,
     .send = PERF_WHOLE_ON_ROOT,
     .recv = PERF_PART,
     .gets = PERF_GETS_PART,
     .rooted = TRUE,
     .divided = TRUE,
     .places = BOTH,
     .works = TRUE,
     .bus = bus_others,
     .copied = copied_once},
    {.name = "scatter_v",
     .coll = DSCOMM_COLL_SCATTER_V,
     .summary = "the same, with parts of different sizes",
     .run = perf_run_scatter_v,
     .send = PERF_WHOLE_ON_ROOT,
     .recv = PERF_PART,
     .gets = PERF_GETS_PART,
     .rooted = TRUE,
     .uneven = TRUE,
     .divided = TRUE,
     .places = BOTH,
     .works = TRUE,
     .bus = bus_others,
     .copied = copied_once},
    {.name = "all_to_all",
     .coll = DSCOMM_COLL_ALL_TO_ALL,
     .summary = "everyone gets a part of everyone's elements",
     .run = perf_run_all_to_all,
     .send = PERF_WHOLE,
     .recv = PERF_WHOLE,
     .gets = PERF_GETS_EXCHANGED,
     .divided = TRUE,
     .places = OUT_ONLY,
     .works = TRUE,
     .bus = bus_others,
     .copied = copied_all},
    {.name = "all_to_all_v",
     .coll = DSCOMM_COLL_ALL_TO_ALL_V,
     .summary = "the same, with parts of different sizes",
     .run = perf_run_all_to_all_v,
     .send = PERF_WHOLE,
     .recv = PERF_WHOLE,
     .gets = PERF_GETS_EXCHANGED,
     .uneven = TRUE,
     .divided = TRUE,
     .places = OUT_ONLY,
     .works = TRUE,
     .bus = bus_others,
     .copied = copied_all},
    {.name = "barrier",
     .coll = DSCOMM_COLL_BARRIER,
     .summary = "everyone waits for everyone",
     .run = perf_run_barrier,
     .places = OUT_ONLY,
     .works = TRUE,
     .bus = bus_one,
     .copied = copied_never},
    {.name = "monitored_barrier",
     .coll = -1,
     .summary = "the same, by the rank 0 that names who is late",
     .run = perf_run_monitored_barrier,
     .places = OUT_ONLY,
     .bus = bus_one,
     .copied = copied_never},
    {.name = "sendrecv",
     .coll = -1,
     .summary = "everyone sends to the next rank",
     .run = perf_run_sendrecv,
     .send = PERF_WHOLE,
     .recv = PERF_WHOLE,
     .gets = PERF_GETS_PREVIOUS,
     .places = OUT_ONLY,
     .bus = bus_one,
     .copied = copied_all},
    {.name = "latency",
     .coll = -1,
     .summary = "a message goes to and fro; one way",
     .run = perf_run_latency,
     .send = PERF_FIRST_TWO,
     .recv = PERF_FIRST_TWO,
     .gets = PERF_GETS_OTHER,
     .places = OUT_ONLY,
     .least_ranks = 2,
     .messages = 2,
     .bus = bus_one,
     .copied = copied_once},
    {.name = "bandwidth",
     .coll = -1,
     .summary = "many messages one way, one answer; per message",
     .run = perf_run_bandwidth,
     .send = PERF_FIRST_TWO,
     .recv = PERF_FIRST_TWO,
     .gets = PERF_GETS_FIRST,
     .places = OUT_ONLY,
     .least_ranks = 2,
     .messages = PERF_WINDOW,
     .bus = bus_one,
     .copied = copied_once},
};

const perf_operation_t *perf_operation(size_t index)
{
    return index < G_N_ELEMENTS(operations) ? &operations[index] : NULL;
}

const perf_operation_t *perf_operation_find(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(operations); i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    return NULL;
}

double perf_algbw(size_t bytes, double time)
{
    return time > 0 ? (double)bytes / time / 1e3 : 0;
}

double perf_busbw(const perf_operation_t *operation, int ranks, double algbw)
{
    return algbw * operation->bus(ranks);
}

const char *perf_row_op(const perf_row_t *row)
{
    return row->operation->reduces ? dscomm_op_name(row->op) : "none";
}
