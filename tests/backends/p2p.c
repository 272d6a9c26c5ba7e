/* SPDX-License-Identifier: BSD-3-Clause */
/* Point to point: sizes, directions, messages to oneself, many at a time. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdlib.h>

static const size_t sizes[] = {
    0,  1,   3,    7,    8,     9,     31,    55,     56,     57,     63,    64,
    65, 500, 4095, 4096, 16385, 65536, 65537, 300001, 524288, 524289, 700001};

/* Blocking calls: even ranks send first. */
static void test_blocking(void)
{
    for (size_t i = 0; i < CONFORM_LENGTH(sizes); i++)
        for (int a = 0; a + 1 < my.ranks; a += 2) {
            message_t l =
                message_with(my.rank == a ? a + 1 : a, (int)i, sizes[i], i);

            if (my.rank == a) {
                message_send(&l);
                message_recv(&l);
            } else if (my.rank == a + 1) {
                message_recv(&l);
                message_send(&l);
            }
        }
}

/* Passes a message around a ring; with one rank that is a message to
 * oneself. */
static void test_ring(void)
{
    for (size_t i = 0; i < CONFORM_LENGTH(sizes); i++) {
        message_t in = message_with(prev_rank(), 5, sizes[i],
                                    i * 64 + (uint64_t)prev_rank());
        message_t out =
            message_with(next_rank(), 5, sizes[i], i * 64 + (uint64_t)my.rank);

        if (i % 2) {
            message_irecv(&in);
            message_isend(&out);
            message_end(&in);
            message_end(&out);
        } else {
            message_isend(&out);
            message_recv(&in);
            message_end(&out);
        }
    }
}

/* Each rank exchanges with every rank at the same time, itself included. */
static void test_all_pairs(void)
{
    message_t *messages = calloc(2 * (size_t)my.ranks, sizeof *messages);

    for (size_t i = 0; messages && i < 3; i++) {
        size_t bytes = conform_scale(i == 2 ? 70000 : i * 50);

        for (int r = 0; r < my.ranks; r++) {
            messages[r] =
                message_with(r, 9, bytes, (uint64_t)(r * 64 + my.rank));
            message_irecv(&messages[r]);
        }
        for (int r = 0; r < my.ranks; r++) {
            message_t *out = &messages[my.ranks + r];

            *out = message_with(r, 9, bytes, (uint64_t)(my.rank * 64 + r));
            message_isend(out);
        }
        for (int r = 2 * my.ranks - 1; r >= 0; r--)
            message_end(&messages[r]);
    }
    free(messages);
}

static void test_self(void)
{
    for (size_t i = 0; i < CONFORM_LENGTH(sizes); i++) {
        message_t in = message_with(my.rank, 3, sizes[i], i);
        message_t out = message_with(my.rank, 3, sizes[i], i);

        if (i % 3 == 0) { /* the receive is posted first */
            message_irecv(&in);
            message_send(&out);
            message_end(&in);
        } else if (i % 3 == 1) { /* the send is started first */
            message_isend(&out);
            message_recv(&in);
            message_end(&out);
        } else {
            message_isend(&out);
            message_irecv(&in);
            message_end(&out);
            message_end(&in);
        }
    }
}

/* Eight MiB in both directions at the same time. */
static void test_large(void)
{
    size_t bytes = my.ranks > 8 ? 100000 : (size_t)8 << 20;
    message_t in = message_with(prev_rank(), 1, bytes, (uint64_t)prev_rank());
    message_t out = message_with(next_rank(), 1, bytes, (uint64_t)my.rank);

    message_irecv(&in);
    message_isend(&out);
    message_end(&out);
    message_end(&in);
    message_isend(&out);
    message_irecv(&in);
    message_end(&in);
    message_end(&out);
}

/* Many more small messages than any window holds, received late. */
static void test_many_small(void)
{
    enum { MANY = 2000 };
    message_t *in = calloc(MANY, sizeof *in), *out = calloc(MANY, sizeof *out);

    for (int i = 0; in && out && i < MANY; i++) {
        out[i] = message_with(next_rank(), 2, 24, (uint64_t)(my.rank + i * 64));
        message_isend(&out[i]);
    }
    for (int i = 0; in && out && i < MANY; i++) {
        in[i] =
            message_with(prev_rank(), 2, 24, (uint64_t)(prev_rank() + i * 64));
        message_recv(&in[i]);
    }
    for (int i = 0; in && out && i < MANY; i++)
        message_end(&out[i]);
    free(in);
    free(out);
}

/* A stream of blocking sends in one direction: the sender can run ahead only by
 * a limited amount. */
static void test_stream(void)
{
    for (int i = 0; i < 300 && my.ranks > 1; i++) {
        size_t bytes = mix((uint64_t)i) % 3000;
        message_t l = message_with(my.rank == 0 ? my.ranks - 1 : 0, i, bytes,
                                   (uint64_t)i);

        if (my.rank == 0)
            message_send(&l);
        else if (my.rank == my.ranks - 1)
            message_recv(&l);
    }
    if (my.ranks == 1)
        conform_skip("needs 2 ranks");
}

/* Two ranks that both send before they receive. */
static void test_exchange(void)
{
    int peer = my.rank ^ 1;

    for (size_t i = 0; i < CONFORM_LENGTH(sizes) && peer < my.ranks; i++) {
        message_t out = message_with(peer, 4, sizes[i], (uint64_t)my.rank);
        message_t in = message_with(peer, 4, sizes[i], (uint64_t)peer);

        message_isend(&out);
        message_irecv(&in);
        message_end(&out);
        message_end(&in);
    }
}

/* Messages and collectives on one group do not disturb each other. */
static void test_among_collectives(void)
{
    exchange_t x = {.group = my.group,
                    .coll = DSCOMM_COLL_ALL_REDUCE,
                    .dtype = DSCOMM_INT32,
                    .count = 50};

    for (int i = 0; i < 20; i++) {
        size_t bytes = i % 2 ? 20000 : 20;
        message_t in =
            message_with(prev_rank(), 6, bytes, (uint64_t)prev_rank());
        message_t out = message_with(next_rank(), 6, bytes, (uint64_t)my.rank);

        message_irecv(&in);
        x.seed++;
        exchange_run(&x);
        message_isend(&out);
        x.seed++;
        exchange_run(&x);
        message_end(&in);
        message_end(&out);
    }
}

static const conform_test_t tests[] = {
    {"send and recv", test_blocking},
    {"ring", test_ring},
    {"all pairs at once", test_all_pairs},
    {"to oneself", test_self},
    {"eight MiB in both directions", test_large},
    {"two thousand messages on their way", test_many_small},
    {"a stream of blocking sends", test_stream},
    {"both send first", test_exchange},
    {"among collectives", test_among_collectives},
    {NULL, NULL},
};
const conform_area_t conform_p2p = {"p2p", NULL, tests};
