/* SPDX-License-Identifier: BSD-3-Clause */
/* One collective, from filling its buffers to checking them. A row describes
 * each: which ranks send and receive, and whether they send one block or one
 * for each rank. */
#include "config.h"

#include "tests/backends/conform.h"
#include "tests/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOBODY, ROOT, ALL };
enum { FIXED, BY_SOURCE, BY_DEST, BY_BOTH };
enum { NOT, IN_RECV, IN_SEND, SAME };

/* The row of a collective. */
typedef struct {
    int senders, send_many; /* many: one block for each destination */
    int receivers, recv_many;
    int reduces;
    int counts; /* on what the length of a block depends */
    int in_place; /* the buffer that contains the other one */
} shape_t;

static const shape_t shapes[] = {
    [DSCOMM_COLL_BROADCAST] = {ROOT, 0, ALL, 0, 0, FIXED, SAME},
    [DSCOMM_COLL_REDUCE] = {ALL, 0, ROOT, 0, 1, FIXED, SAME},
    [DSCOMM_COLL_ALL_REDUCE] = {ALL, 0, ALL, 0, 1, FIXED, SAME},
    [DSCOMM_COLL_ALL_GATHER] = {ALL, 0, ALL, 1, 0, FIXED, IN_RECV},
    [DSCOMM_COLL_ALL_GATHER_V] = {ALL, 0, ALL, 1, 0, BY_SOURCE, IN_RECV},
    [DSCOMM_COLL_REDUCE_SCATTER] = {ALL, 1, ALL, 0, 1, FIXED, IN_SEND},
    [DSCOMM_COLL_REDUCE_SCATTER_V] = {ALL, 1, ALL, 0, 1, BY_DEST, IN_SEND},
    [DSCOMM_COLL_GATHER] = {ALL, 0, ROOT, 1, 0, FIXED, IN_RECV},
    [DSCOMM_COLL_GATHER_V] = {ALL, 0, ROOT, 1, 0, BY_SOURCE, IN_RECV},
    [DSCOMM_COLL_SCATTER] = {ROOT, 1, ALL, 0, 0, FIXED, IN_SEND},
    [DSCOMM_COLL_SCATTER_V] = {ROOT, 1, ALL, 0, 0, BY_DEST, IN_SEND},
    [DSCOMM_COLL_ALL_TO_ALL] = {ALL, 1, ALL, 1, 0, FIXED, NOT},
    [DSCOMM_COLL_ALL_TO_ALL_V] = {ALL, 1, ALL, 1, 0, BY_BOTH, NOT},
    [DSCOMM_COLL_BARRIER] = {NOBODY, 0, NOBODY, 0, 0, FIXED, NOT},
};

int exchange_rooted(int coll)
{
    return shapes[coll].senders == ROOT || shapes[coll].receivers == ROOT;
}

int exchange_reduces(int coll)
{
    return shapes[coll].reduces;
}

int exchange_in_place(int coll)
{
    return shapes[coll].in_place != NOT;
}

static int takes_part(const exchange_t *x, int who)
{
    return who == ALL || (who == ROOT && x->rank == x->root);
}

/* The number of elements that source sends to dest; with unequal lengths about
 * one block in four is empty. */
static size_t length(const exchange_t *x, int source, int dest)
{
    static const unsigned use[][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
    const unsigned *by = use[shapes[x->coll].counts];
    uint64_t r;

    if (shapes[x->coll].counts == FIXED)
        return x->count;
    r = mix(x->seed + 977 * by[0] * (unsigned)source +
            31 * by[1] * (unsigned)dest + 5);
    return r >> 62 == 0 ? 0 : r % (2 * x->count + 1);
}

/* Computes displacements: packed, or in reverse order with a gap before each
 * block. */
static size_t lay_out(const exchange_t *x, const size_t *counts, size_t *displs,
                      int with_gaps)
{
    size_t end = 0;

    for (int i = 0; i < x->ranks; i++) {
        int block = with_gaps ? x->ranks - 1 - i : i;

        end += with_gaps ? 1 + (size_t)(x->rank + i) % 3 : 0;
        displs[block] = end;
        end += counts[block];
    }
    return end;
}

static uint64_t stream(const exchange_t *x, int source, int dest)
{
    int to = shapes[x->coll].send_many ? dest : 0;

    return x->seed * 69069 + (uint64_t)source * 4096 + (uint64_t)to + 1;
}

static void make_counts(exchange_t *x)
{
    size_t *arrays = calloc(4 * (size_t)x->ranks, sizeof *arrays);

    x->send_counts = arrays;
    x->send_displs = arrays + x->ranks;
    x->recv_counts = arrays + 2 * x->ranks;
    x->recv_displs = arrays + 3 * x->ranks;
    for (int r = 0; arrays && r < x->ranks; r++) {
        x->send_counts[r] = length(x, x->rank, r);
        x->recv_counts[r] = length(x, r, x->rank);
    }
}

/* Writes the data that this rank sends. */
static void put_send(const exchange_t *x, unsigned char *to)
{
    const shape_t *shape = &shapes[x->coll];
    pattern_t pattern = {x->dtype, x->op, x->ranks, x->seed};

    for (int r = 0; r < (shape->send_many ? x->ranks : 1); r++) {
        unsigned char *block = to + x->send_displs[r] * x->element;

        if (shape->reduces)
            pattern_input(&pattern, x->rank, x->send_displs[r],
                          x->send_counts[r], block);
        else
            pattern_bytes(block, x->element, stream(x, x->rank, r), 0,
                          x->send_counts[r]);
    }
}

/* Writes the data that this rank must receive. */
static void put_recv(const exchange_t *x, unsigned char *to)
{
    const shape_t *shape = &shapes[x->coll];
    pattern_t pattern = {x->dtype, x->op, x->ranks, x->seed};

    if (shape->reduces) {
        pattern_result(&pattern, shape->send_many ? x->send_displs[x->rank] : 0,
                       x->recv_counts[x->rank], to);
        return;
    }
    for (int r = 0; shape->recv_many && r < x->ranks; r++)
        pattern_bytes(to + x->recv_displs[r] * x->element, x->element,
                      stream(x, r, x->rank), 0, x->recv_counts[r]);
    if (!shape->recv_many)
        pattern_bytes(to, x->element, stream(x, x->root, x->rank), 0,
                      x->recv_counts[x->root]);
}

/* Byte displacement of this rank's own block, if it is used in place. */
static size_t own_block(const exchange_t *x, int where)
{
    if (where == IN_SEND)
        return x->send_displs[x->rank] * x->element;
    return where == IN_RECV ? x->recv_displs[x->rank] * x->element : 0;
}

/* Makes one area for both buffers. */
static int begin_in_place(exchange_t *x, size_t send_bytes, size_t recv_bytes)
{
    const shape_t *shape = &shapes[x->coll];
    area_t *area = &x->recv_area;
    size_t bytes = send_bytes > recv_bytes ? send_bytes : recv_bytes;
    size_t own = own_block(x, shape->in_place);
    int outer_is_recv = shape->in_place != IN_SEND;

    if (!area_make(area, bytes, x->offset, x->allocated ? x->group : NULL))
        return 0;
    x->send = area->data + (outer_is_recv ? own : 0);
    x->recv = area->data + (outer_is_recv ? 0 : own);
    if (takes_part(x, shape->senders))
        put_send(x, x->send);
    area_keep(area);
    put_recv(x, area_expect(area, outer_is_recv ? 0 : own));
    return 1;
}

static int begin_separate(exchange_t *x, size_t send_bytes, size_t recv_bytes)
{
    const shape_t *shape = &shapes[x->coll];
    dscomm_group_t *group = x->allocated ? x->group : NULL;

    if (takes_part(x, shape->senders)) {
        if (!area_make(&x->send_area, send_bytes, x->offset, group))
            return 0;
        x->send = x->send_area.data;
        put_send(x, x->send);
        area_keep(&x->send_area);
    }
    if (takes_part(x, shape->receivers)) {
        if (!area_make(&x->recv_area, recv_bytes, x->offset, group))
            return 0;
        x->recv = x->recv_area.data;
        put_recv(x, area_expect(&x->recv_area, 0));
    }
    return 1;
}

/* Sets empty buffers to NULL in every second call. */
static void drop_empty(exchange_t *x, size_t send_bytes, size_t recv_bytes)
{
    if (x->seed % 2 == 0)
        return;
    if (send_bytes == 0)
        x->send = NULL;
    if (recv_bytes == 0)
        x->recv = NULL;
}

int exchange_begin(exchange_t *x)
{
    const shape_t *shape = &shapes[x->coll];
    size_t send_count, recv_count;
    int together, made;

    x->rank = dscomm_group_rank(x->group);
    x->ranks = dscomm_group_size(x->group);
    x->element = dscomm_dtype_size(x->dtype);
    x->send = x->recv = NULL;
    x->work = NULL;
    x->gaps = x->gaps && shape->counts != FIXED;
    make_counts(x);
    if (!check(x->send_counts != NULL, "no memory for counts"))
        return 0;
    send_count = lay_out(x, x->send_counts, x->send_displs,
                         x->gaps && shape->send_many && !shape->reduces);
    recv_count =
        lay_out(x, x->recv_counts, x->recv_displs, x->gaps && shape->recv_many);
    if (!shape->send_many)
        send_count = x->send_counts[0];
    if (!shape->recv_many)
        recv_count = x->recv_counts[shape->reduces ? x->rank : x->root];
    together =
        (x->in_place || x->coll == DSCOMM_COLL_BROADCAST) &&
        shape->in_place != NOT &&
        (x->coll == DSCOMM_COLL_BROADCAST ||
         (takes_part(x, shape->senders) && takes_part(x, shape->receivers)));
    made = together ? begin_in_place(x, send_count * x->element,
                                     recv_count * x->element)
                    : begin_separate(x, send_count * x->element,
                                     recv_count * x->element);
    if (made)
        drop_empty(x, send_count, recv_count);
    return made;
}

/* Returns NULL, which means packed, in every second call. */
static const size_t *displs(const exchange_t *x, const size_t *array)
{
    return x->gaps || x->seed % 2 ? array : NULL;
}

static const char *describe(const exchange_t *x, char *text, size_t size)
{
    snprintf(text, size,
             "%s %s %s count %zu root %d%s%s%s offset %zu seed %llu",
             dscomm_coll_name(x->coll), dscomm_dtype_name(x->dtype),
             shapes[x->coll].reduces ? dscomm_op_name(x->op) : "", x->count,
             x->root, x->in_place ? " in place" : "", x->gaps ? " gaps" : "",
             x->allocated ? " mem_alloc" : "", x->offset,
             (unsigned long long)x->seed);
    return text;
}

dscomm_status_t exchange_post(exchange_t *x, dscomm_work_t **ret_work)
{
    const shape_t *shape = &shapes[x->coll];
    collective_t call = {.coll = x->coll,
                         .send = x->send,
                         .recv = x->recv,
                         .count = shape->counts == FIXED ? x->count
                                  : shape->senders == ROOT
                                      ? x->recv_counts[x->root]
                                      : x->send_counts[0],
                         .dtype = x->dtype,
                         .op = shape->reduces ? x->op : 0,
                         .root = x->root,
                         .factor = pattern_factor(x->rank)};
    char text[256];
    dscomm_status_t status;

    if (takes_part(x, shape->senders)) {
        call.send_counts = x->send_counts;
        call.send_displs = displs(x, x->send_displs);
    }
    if (takes_part(x, shape->receivers)) {
        call.recv_counts = x->recv_counts;
        call.recv_displs = displs(x, x->recv_displs);
    }
    status = collective_call(x->group, &call, ret_work);
    check_status(status, DSCOMM_OK, "%s", describe(x, text, sizeof text));
    return status;
}

/* A true result may be any byte but 0, so makes all of them 1. */
static void unify_truths(exchange_t *x)
{
    unsigned char *result = x->recv;

    if (!shapes[x->coll].reduces || x->dtype != DSCOMM_BOOL || !result ||
        !takes_part(x, shapes[x->coll].receivers))
        return;
    for (size_t i = 0; i < x->recv_counts[x->rank]; i++)
        result[i] = result[i] != 0;
}

void exchange_start(exchange_t *x, int as_work)
{
    if (exchange_begin(x))
        exchange_post(x, as_work ? &x->work : NULL);
}

void exchange_wait(exchange_t *x)
{
    if (x->work)
        CHECK_OK(dscomm_work_wait(x->work, DSCOMM_TIMEOUT_DEFAULT));
}

int exchange_end(exchange_t *x)
{
    char text[256], what[300];
    int passed;

    exchange_wait(x);
    describe(x, text, sizeof text);
    unify_truths(x);
    snprintf(what, sizeof what, "%s: receive buffer", text);
    passed = area_check(&x->recv_area, what);
    snprintf(what, sizeof what, "%s: send buffer", text);
    passed &= area_check(&x->send_area, what);
    dscomm_work_free(x->work);
    area_drop(&x->send_area);
    area_drop(&x->recv_area);
    free(x->send_counts);
    x->send_counts = NULL;
    return passed;
}

int exchange_run(exchange_t *x)
{
    int passed = exchange_begin(x) && exchange_post(x, NULL) == DSCOMM_OK;

    return exchange_end(x) && passed;
}
