/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers, arguments and expected results of collectives. */
#include "config.h"

#include "lib/call/check.h"
#include "lib/schedule/choice.h"
#include "lib/schedule/early.h"
#include "tests/lib/schedule/case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 64
#define MARK 0xa5

#define IS(c, name) ((c)->algorithm->coll == DSCOMM_COLL_##name)
#define IS_ANY(c, name) (IS(c, name) || IS(c, name##_V))

int case_reduces(int coll)
{
    return coll == DSCOMM_COLL_REDUCE || coll == DSCOMM_COLL_ALL_REDUCE ||
           coll == DSCOMM_COLL_REDUCE_SCATTER ||
           coll == DSCOMM_COLL_REDUCE_SCATTER_V;
}

int case_has_root(int coll)
{
    return coll == DSCOMM_COLL_BROADCAST || coll == DSCOMM_COLL_REDUCE ||
           coll == DSCOMM_COLL_GATHER || coll == DSCOMM_COLL_GATHER_V ||
           coll == DSCOMM_COLL_SCATTER || coll == DSCOMM_COLL_SCATTER_V;
}

int case_fits(const case_t *c)
{
    const dscomm_nodes_t some = {.ranks = c->ranks, .count = 1};
    const dscomm_nodes_t *nodes = c->hosts ? &some : NULL;
    dscomm_coll_args_t args = {.coll = c->algorithm->coll,
                               .dtype = c->dtype,
                               .op = c->op,
                               .count = c->count};

    return !c->algorithm->fits || c->algorithm->fits(&args, c->ranks, nodes);
}

static int is_v(const case_t *c)
{
    return IS(c, ALL_GATHER_V) || IS(c, REDUCE_SCATTER_V) || IS(c, GATHER_V) ||
           IS(c, SCATTER_V) || IS(c, ALL_TO_ALL_V);
}

/* Element k of rank's input: whole numbers, from -8 to 8. */
static int value(int rank, size_t k)
{
    return (int)((31 * (size_t)rank + 7 * k + 3 * (k >> 9)) % 17) - 8;
}

static double factor(int rank)
{
    return rank % 3 + 1;
}

static size_t element(const case_t *c)
{
    return dscomm_dtype_size((dscomm_dtype_t)c->dtype);
}

static void put(const case_t *c, char *buffer, size_t k, double x)
{
    char *at = buffer + k * element(c);
    float single = (float)x;
    int32_t word = (int32_t)x;
    int8_t byte = (int8_t)word;

    if (c->dtype == DSCOMM_FLOAT64)
        memcpy(at, &x, sizeof x);
    else if (c->dtype == DSCOMM_FLOAT32)
        memcpy(at, &single, sizeof single);
    else if (c->dtype == DSCOMM_INT32)
        memcpy(at, &word, sizeof word);
    else if (c->dtype == DSCOMM_INT8)
        memcpy(at, &byte, sizeof byte);
    else /* the upper half of a float32 whose lower half is zero */
        memcpy(at, (char *)&single + 2, 2);
}

/* Elements that rank receives as its own block, or sends. */
static size_t block(const case_t *c, int rank)
{
    return is_v(c) ? c->count * (size_t)((5 * rank + 1) % 4) / 3 : c->count;
}

static size_t between(const case_t *c, int from, int to)
{
    return IS(c, ALL_TO_ALL_V)
               ? c->count * (size_t)((3 * from + 5 * to) % 4) / 3
               : c->count;
}

static size_t lay_out(size_t *counts, size_t *displs, int ranks, size_t gap)
{
    size_t offset = 0;

    for (int r = 0; r < ranks; r++) {
        displs[r] = offset;
        offset += counts[r] + gap;
    }
    return offset;
}

static char *buffer_new(size_t bytes)
{
    char *buffer = malloc(bytes + 2 * GUARD);

    memset(buffer, MARK, bytes + 2 * GUARD);
    return buffer + GUARD;
}

/* Computes the blocks of all ranks, from or to rank. */
static void count_blocks(const case_t *c, stage_t *stage, int rank)
{
    for (int r = 0; r < c->ranks; r++) {
        int all = IS_ANY(c, ALL_TO_ALL);

        stage->send_counts[rank][r] = all ? between(c, rank, r) : block(c, r);
        stage->recv_counts[rank][r] = all ? between(c, r, rank) : block(c, r);
        if (!is_v(c)) /* the counts of other ranks are not known here */
            stage->send_counts[rank][r] = stage->recv_counts[rank][r] =
                c->count;
    }
}

/* Hash of the counts on which all ranks must agree. */
static size_t sign(const case_t *c, const stage_t *stage, int rank)
{
    size_t sum = 0;

    if (!is_v(c))
        return c->count;
    if (IS(c, ALL_GATHER_V) || IS(c, REDUCE_SCATTER_V))
        for (int r = 0; r < c->ranks; r++)
            sum = sum * 1000003 + stage->recv_counts[rank][r];
    return sum;
}

static void make_args(const case_t *c, stage_t *stage, int rank,
                      uint64_t sequence)
{
    dscomm_coll_args_t *args = &stage->args[rank];
    const size_t own = IS(c, ALL_TO_ALL_V) ? c->count : block(c, rank);
    const size_t gap = is_v(c) && !IS(c, REDUCE_SCATTER_V);
    const int rooted = c->root >= 0, at_root = rank == c->root;
    size_t all_send, all_recv, send = own, recv = own;

    count_blocks(c, stage, rank);
    all_send = lay_out(stage->send_counts[rank], stage->send_displs[rank],
                       c->ranks, gap);
    all_recv = lay_out(stage->recv_counts[rank], stage->recv_displs[rank],
                       c->ranks, gap);
    if (IS(c, BARRIER))
        send = recv = 0;
    if (IS(c, BROADCAST) || (IS(c, REDUCE) && !at_root))
        *(IS(c, BROADCAST) ? &send : &recv) = 0;
    if (IS_ANY(c, ALL_GATHER) || IS_ANY(c, ALL_TO_ALL))
        recv = all_recv;
    if (IS_ANY(c, REDUCE_SCATTER) || IS_ANY(c, ALL_TO_ALL))
        send = all_send;
    if (IS_ANY(c, GATHER))
        recv = at_root ? all_recv : 0;
    if (IS_ANY(c, SCATTER))
        send = at_root ? all_send : 0;
    stage->send_bytes[rank] = send * element(c);
    stage->recv_bytes[rank] = recv * element(c);
    *args = (dscomm_coll_args_t){
        .coll = c->algorithm->coll,
        .dtype = c->dtype,
        .op = c->op,
        .root = c->root,
        .count = own,
        .element = element(c),
        .factor = factor(rank),
        .sequence = sequence,
        .fingerprint = dscomm_priv_fingerprint(
            c->algorithm->coll, c->dtype, c->op, c->root, sign(c, stage, rank)),
    };
    if (is_v(c) && !IS(c, GATHER_V) && !IS(c, ALL_GATHER_V) &&
        !IS(c, REDUCE_SCATTER_V) && (!rooted || at_root)) {
        args->send_counts = stage->send_counts[rank];
        args->send_displs = stage->send_displs[rank];
    }
    if (is_v(c) && !IS(c, SCATTER_V) && (!rooted || at_root)) {
        args->recv_counts = stage->recv_counts[rank];
        args->recv_displs = stage->recv_displs[rank];
    }
}

/* Returns the offset of the shorter buffer in the longer one, in place. */
static size_t own_offset(const case_t *c, const stage_t *stage, int rank)
{
    if (IS(c, REDUCE) || IS(c, ALL_REDUCE))
        return 0;
    return stage->recv_displs[rank][rank] * element(c);
}

static void make_buffers(const case_t *c, stage_t *stage, int rank)
{
    dscomm_coll_args_t *args = &stage->args[rank];
    size_t send = stage->send_bytes[rank], recv = stage->recv_bytes[rank];
    size_t offset = own_offset(c, stage, rank);

    stage->send[rank] = buffer_new(send);
    stage->recv[rank] = buffer_new(recv);
    args->send = stage->send[rank];
    args->recv = stage->recv[rank];
    if (IS(c, BROADCAST))
        args->send = rank == c->root ? stage->recv[rank] : NULL;
    if (IS(c, BARRIER))
        args->send = args->recv = NULL;
    if (c->root >= 0 && rank != c->root && !IS(c, BROADCAST) &&
        !IS_ANY(c, SCATTER))
        args->recv = NULL;
    if (c->root >= 0 && rank != c->root && IS_ANY(c, SCATTER))
        args->send = NULL;
    if (!c->in_place || !args->send || !args->recv)
        return;
    if (recv >= send)
        args->send = stage->recv[rank] + offset;
    else
        args->recv = stage->send[rank] + offset;
}

/* Writes rank's input to its buffer. */
static void fill(const case_t *c, stage_t *stage, int rank)
{
    char *send = (char *)(uintptr_t)stage->args[rank].send;
    const size_t *counts = stage->send_counts[rank];
    size_t whole = stage->send_bytes[rank] / element(c);

    if (!send)
        return;
    if (IS(c, BROADCAST))
        whole = stage->recv_bytes[rank] / element(c);
    if (IS_ANY(c, ALL_TO_ALL) || IS_ANY(c, SCATTER)) {
        for (int r = 0; r < c->ranks; r++)
            for (size_t k = 0; k < counts[r]; k++)
                put(c, send, stage->send_displs[rank][r] + k,
                    value(rank, k + 1000 * (size_t)r));
        return;
    }
    for (size_t k = 0; k < whole; k++)
        put(c, send, k, value(rank, k));
}

static void begin_rank(const case_t *c, loop_t *loop, uint64_t sequence,
                       stage_t *stage, int rank)
{
    dscomm_port_t port = {loop_ops(), loop_impl(loop, rank), "loop", NULL,
                          NULL};

    make_args(c, stage, rank, sequence);
    make_buffers(c, stage, rank);
    fill(c, stage, rank);
    stage->schedules[rank] = dscomm_priv_schedule_new(
        c->algorithm, &stage->args[rank], rank, c->ranks,
        c->hosts ? &stage->nodes : NULL, dscomm_priv_choice_default);
    stage->schedules[rank]->header.algorithm =
        (uint8_t)dscomm_priv_algorithm_number(c->algorithm);
    stage->runs[rank] = dscomm_priv_run_new(stage->schedules[rank], &port);
}

static void end_rank(stage_t *stage, int rank)
{
    if (stage->runs[rank]->status != DSCOMM_OK)
        dscomm_priv_run_cancel(stage->runs[rank], DSCOMM_ERR_ABORTED);
    dscomm_priv_run_free(stage->runs[rank]);
    dscomm_priv_schedule_free(stage->schedules[rank]);
    free(stage->send[rank] - GUARD);
    free(stage->recv[rank] - GUARD);
}

void case_replace(const case_t *c, loop_t *loop, uint64_t sequence,
                  stage_t *stage, int rank)
{
    end_rank(stage, rank);
    begin_rank(c, loop, sequence, stage, rank);
}

static void find_nodes(const case_t *c, dscomm_nodes_t *nodes)
{
    dscomm_nodes_t hosts;
    int members[CASE_RANKS];

    dscomm_priv_nodes_one(c->ranks, &hosts);
    for (int r = 0; r < c->ranks; r++) {
        members[r] = r;
        hosts.node[r] = c->hosts[r] - 'a';
        hosts.count = MAX(hosts.count, hosts.node[r] + 1);
    }
    dscomm_priv_nodes_within(&hosts, members, c->ranks, nodes);
    dscomm_priv_nodes_clear(&hosts);
}

void case_begin(const case_t *c, loop_t *loop, uint64_t sequence,
                stage_t *stage)
{
    memset(stage, 0, sizeof *stage);
    if (c->hosts)
        find_nodes(c, &stage->nodes);
    for (int r = 0; r < c->ranks; r++)
        begin_rank(c, loop, sequence, stage, r);
}

void case_start(loop_t *loop, stage_t *stage, int rank)
{
    dscomm_run_t *run = stage->runs[rank];

    stage->started[rank] = 1;
    if (loop_random(loop, 2))
        dscomm_priv_run_now(run, &stage->args[rank], loop_random(loop, 4));
    else
        dscomm_priv_run_start(run, &stage->args[rank]);
}

/* Advances like a group: a run that fails is cancelled at once. */
static int advance(loop_t *loop, stage_t *stage, int rank)
{
    dscomm_run_t *run = stage->runs[rank];
    int moved;

    if (run->status != DSCOMM_IN_PROGRESS)
        return 0;
    loop_ops()->progress(loop_impl(loop, rank));
    moved = dscomm_priv_run_advance(run) > 0;
    if (run->status < 0)
        dscomm_priv_run_cancel(run, run->status);
    return moved;
}

/* Advances the started runs until nothing moves, one message at a time. */
static int move(const case_t *c, loop_t *loop, stage_t *stage)
{
    int moved = loop_step(loop);

    if (stage->posts_early && !loop_random(loop, 4))
        dscomm_priv_early_begin(
            stage->runs[loop_random(loop, (unsigned)c->ranks)]);
    for (int r = 0; r < c->ranks; r++)
        if (stage->started[r] && !loop_is_dead(loop, r))
            moved += advance(loop, stage, r);
    return moved;
}

int case_drive(const case_t *c, loop_t *loop, stage_t *stage)
{
    int nstarted = 0, ended = 0, moved = 1;

    while (nstarted < c->ranks || moved) {
        int r = (int)loop_random(loop, (unsigned)c->ranks);

        if (!stage->started[r]) {
            nstarted++;
            case_start(loop, stage, r);
        }
        moved = move(c, loop, stage);
    }
    for (int r = 0; r < c->ranks; r++)
        ended += stage->runs[r]->status == DSCOMM_OK;
    return ended;
}

void case_post_early(const case_t *c, loop_t *loop, stage_t *stage)
{
    for (int r = 0; r < c->ranks; r++)
        dscomm_priv_early_begin(stage->runs[r]);
    while (move(c, loop, stage))
        ;
}

static double reduced(const case_t *c, size_t k)
{
    double x = 0;

    for (int r = 0; r < c->ranks; r++) {
        double y = value(r, k);

        if (c->op == DSCOMM_PREMUL_SUM)
            y *= factor(r);
        if (r == 0)
            x = y;
        else if (c->op == DSCOMM_MAX)
            x = x > y ? x : y;
        else
            x += y;
    }
    if (c->op == DSCOMM_AVG)
        x /= c->ranks; /* put() truncates for integers */
    return x;
}

typedef struct {
    const case_t *c;
    const stage_t *stage;
    int rank;
    char *want; /* the expected contents of recv */
} expected_t;

static void expect_blocks(const expected_t *e)
{
    const size_t *displs = e->stage->recv_displs[e->rank];
    int all = IS_ANY(e->c, ALL_TO_ALL);

    for (int r = 0; r < e->c->ranks; r++)
        for (size_t k = 0; k < e->stage->recv_counts[e->rank][r]; k++)
            put(e->c, e->want, displs[r] + k,
                value(r, k + (all ? 1000 * (size_t)e->rank : 0)));
}

static void expect(const expected_t *e)
{
    const case_t *c = e->c;
    size_t count = e->stage->recv_bytes[e->rank] / element(c), first = 0;

    if (!count)
        return;
    if (IS_ANY(c, REDUCE_SCATTER))
        first = e->stage->recv_displs[e->rank][e->rank];
    if (IS_ANY(c, ALL_GATHER) || IS_ANY(c, GATHER) || IS_ANY(c, ALL_TO_ALL)) {
        expect_blocks(e);
        return;
    }
    for (size_t k = 0; k < count; k++) {
        double x = value(c->root, k);

        if (case_reduces(c->algorithm->coll))
            x = reduced(c, first + k);
        else if (!IS(c, BROADCAST))
            x = value(c->root, k + 1000 * (size_t)e->rank);
        put(c, e->want, k, x);
    }
}

static int is_guarded(const char *buffer, size_t bytes)
{
    for (int i = 0; i < GUARD; i++)
        if ((unsigned char)buffer[-1 - i] != MARK ||
            (unsigned char)buffer[bytes + (size_t)i] != MARK)
            return 0;
    return 1;
}

int case_is_guarded(const stage_t *stage, int rank)
{
    return is_guarded(stage->send[rank], stage->send_bytes[rank]) &&
           is_guarded(stage->recv[rank], stage->recv_bytes[rank]);
}

int case_check_rank(const case_t *c, const stage_t *stage, int rank, char *text,
                    size_t size)
{
    const size_t bytes = stage->recv_bytes[rank];
    const char *got = stage->args[rank].recv;
    char *want = buffer_new(bytes);
    int right = 1;

    expect(&(expected_t){c, stage, rank, want});
    for (size_t i = 0; right && got && i < bytes; i++)
        if (got[i] != want[i]) {
            snprintf(text, size, "rank %d: byte %zu of %zu is %02x, not %02x",
                     rank, i, bytes, got[i] & 0xff, want[i] & 0xff);
            right = 0;
        }
    if (!case_is_guarded(stage, rank)) {
        snprintf(text, size, "rank %d: bytes beside a buffer were written",
                 rank);
        right = 0;
    }
    free(want - GUARD);
    return right;
}

/* Checks that the send buffer was not changed, out of place. */
static int check_send(const case_t *c, stage_t *stage, int rank, char *text,
                      size_t size)
{
    const size_t bytes = stage->send_bytes[rank];
    char *before;
    int right = 1;

    if (c->in_place || !bytes || !stage->args[rank].send)
        return 1;
    before = malloc(bytes);
    memcpy(before, stage->send[rank], bytes);
    memset(stage->send[rank], MARK, bytes);
    fill(c, stage, rank);
    if (memcmp(before, stage->send[rank], bytes)) {
        snprintf(text, size, "rank %d: the send buffer was written", rank);
        right = 0;
    }
    free(before);
    return right;
}

int case_check(const case_t *c, const stage_t *stage, char *text, size_t size)
{
    for (int r = 0; r < c->ranks; r++) {
        stage_t *own = (stage_t *)(uintptr_t)stage;

        if (stage->runs[r]->status != DSCOMM_OK) {
            char why[256] = "";

            if (stage->runs[r]->status == DSCOMM_IN_PROGRESS)
                dscomm_priv_run_explain(stage->runs[r], why, sizeof why);
            snprintf(text, size, "rank %d: %s: %s%s", r,
                     dscomm_status_name(stage->runs[r]->status),
                     stage->runs[r]->failure.detail, why);
            return 0;
        }
        if (!case_check_rank(c, stage, r, text, size) ||
            !check_send(c, own, r, text, size))
            return 0;
    }
    return 1;
}

void case_end(const case_t *c, stage_t *stage)
{
    for (int r = 0; r < c->ranks; r++)
        end_rank(stage, r);
    dscomm_priv_nodes_clear(&stage->nodes);
}
