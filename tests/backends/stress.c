/* SPDX-License-Identifier: BSD-3-Clause */
/* Thousands of random operations on random groups. All ranks draw the same
 * numbers, so each knows the next operation. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdlib.h>
#include <string.h>

#define GROUPS 6
#define FLIGHT 5

/* Operations in progress on this rank, oldest first. */
typedef struct {
    dscomm_group_t *groups[GROUPS]; /* NULL if this rank is not a member */
    exchange_t exchanges[FLIGHT];
    int exchanging;
    message_t messages[2 * FLIGHT];
    int mailing;
} stress_t;

static void make_groups(stress_t *s)
{
    int half = (my.ranks + 1) / 2;

    CHECK_OK(dscomm_group_split(my.group, 0, 0, NULL, &s->groups[0]));
    CHECK_OK(dscomm_group_split(my.group, 0, -my.rank, NULL, &s->groups[1]));
    CHECK_OK(dscomm_group_split(my.group, my.rank % 2, 0, NULL, &s->groups[2]));
    CHECK_OK(dscomm_group_split(my.group, my.rank / half, my.rank * 7 % 5, NULL,
                                &s->groups[3]));
    CHECK_OK(dscomm_group_split(my.group, my.rank == 0 ? DSCOMM_NO_COLOR : 1, 0,
                                NULL, &s->groups[4]));
    CHECK_OK(dscomm_group_split(my.group,
                                my.rank == my.ranks - 1 ? DSCOMM_NO_COLOR : 1,
                                -my.rank, NULL, &s->groups[5]));
}

static void land_exchanges(stress_t *s)
{
    for (int i = s->exchanging - 1; i >= 0; i--)
        exchange_end(&s->exchanges[i]);
    s->exchanging = 0;
}

static void end_messages(stress_t *s)
{
    for (int i = s->mailing - 1; i >= 0; i--)
        message_end(&s->messages[i]);
    s->mailing = 0;
}

static size_t draw_count(uint64_t r)
{
    static const size_t limits[] = {2, 12, 80, 80, 1000, 1000, 5000, 40000};

    return (r >> 8) % limits[r % CONFORM_LENGTH(limits)];
}

static dscomm_op_t draw_op(uint64_t r, dscomm_dtype_t dtype)
{
    dscomm_op_t op = (dscomm_op_t)(r % (DSCOMM_OP_COUNT - 1));

    return dscomm_op_applies(op, dtype) ? op : DSCOMM_MAX;
}

static void step_collective(stress_t *s, uint64_t r)
{
    exchange_t x;
    int group = (int)(r % GROUPS), as_work = r >> 8 & 1;

    if (!s->groups[group])
        return;
    memset(&x, 0, sizeof x);
    x.group = s->groups[group];
    x.coll = (int)(mix(r) % 14);
    x.dtype = (dscomm_dtype_t)(mix(r + 1) % DSCOMM_DTYPE_COUNT);
    x.op = draw_op(mix(r + 2), x.dtype);
    x.count = conform_scale(draw_count(mix(r + 3)));
    x.root = (int)(mix(r + 4) % (uint64_t)dscomm_group_size(x.group));
    x.seed = r;
    x.in_place = r >> 9 & 1;
    x.gaps = r >> 10 & 1;
    x.offset = r >> 11 & 3;
    x.allocated = mix(r + (uint64_t)my.rank) % 4 == 0;
    if (!as_work) {
        exchange_run(&x);
        return;
    }
    if (s->exchanging == FLIGHT)
        land_exchanges(s);
    exchange_start(&x, 1);
    s->exchanges[s->exchanging++] = x;
}

/* A message between two members of the first group, which may be the same
 * rank. */
static void step_message(stress_t *s, uint64_t r)
{
    int from = (int)(r % (uint64_t)my.ranks);
    int to = (int)((r >> 20) % (uint64_t)my.ranks);
    message_t l = {.group = s->groups[0],
                   .tag = (int)(r >> 40 & 3),
                   .bytes = draw_count(mix(r)) * 3,
                   .seed = r};

    if (s->mailing + 2 > 2 * FLIGHT)
        end_messages(s);
    if (my.rank == from) {
        l.peer = to;
        message_isend(&l);
        s->messages[s->mailing++] = l;
    }
    if (my.rank == to) {
        l.peer = from;
        message_irecv(&l);
        s->messages[s->mailing++] = l;
    }
}

static void run(int steps, uint64_t seed)
{
    stress_t s;

    memset(&s, 0, sizeof s);
    make_groups(&s);
    for (int i = 0; i < steps; i++) {
        uint64_t r = mix(seed + (uint64_t)i);

        if (r >> 61 == 0)
            step_message(&s, mix(r));
        else
            step_collective(&s, mix(r));
    }
    land_exchanges(&s);
    end_messages(&s);
    for (int i = 0; i < GROUPS; i++)
        if (s.groups[i])
            CHECK_OK(dscomm_group_free(s.groups[i]));
}

/* CONFORM_SEED=N in the environment of all ranks selects other operations. */
static void test_random(void)
{
    const char *seed = getenv("CONFORM_SEED");

    run(my.ranks > 8   ? 200
        : my.ranks > 5 ? 1000
                       : 2000,
        seed ? strtoull(seed, NULL, 10) : 20240229);
}

static const conform_test_t tests[] = {
    {"random operations on random groups", test_random},
    {NULL, NULL},
};
const conform_area_t conform_stress = {"stress", NULL, tests};
