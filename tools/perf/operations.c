/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that call the operations, the table of them, and the blocks of
 * buffers that belong to each rank, see operations.h. */
#include "config.h"

#include "tools/perf/messages.h"
#include "tools/perf/operations.h"
#include "tools/perf/sequences.h"

#include <stdbool.h>
#include <string.h>

#define TAG PERF_TAG
#define WINDOW PERF_WINDOW

/* Defines a function for an operation that is one call of the library. */
#define CALL(name, ...)                                                        \
    static dscomm_status_t call_##name(const perf_call_t *c,                   \
                                       dscomm_work_t **work)                   \
    {                                                                          \
        return dscomm_##name(c->group, __VA_ARGS__, work);                     \
    }

CALL(reduce_scatter_v, c->send, c->recv, c->counts, c->dtype, c->op)
CALL(broadcast, c->recv, c->count, c->dtype, c->root)
CALL(all_gather, c->send, c->recv, c->count, c->dtype)
CALL(all_gather_v, c->send, c->counts[c->rank], c->recv, c->counts, c->displs,
     c->dtype)
CALL(gather, c->send, c->recv, c->count, c->dtype, c->root)
CALL(gather_v, c->send, c->counts[c->rank], c->recv, c->counts, c->displs,
     c->dtype, c->root)
CALL(scatter, c->send, c->recv, c->count, c->dtype, c->root)
CALL(scatter_v, c->send, c->counts, c->displs, c->recv, c->counts[c->rank],
     c->dtype, c->root)
CALL(all_to_all, c->send, c->recv, c->count, c->dtype)
CALL(all_to_all_v, c->send, c->counts, c->displs, c->recv, c->counts, c->displs,
     c->dtype)

/* Does the same for a reduction, which uses another call for PREMUL_SUM;
 * arguments after the operator are given last. */
#define REDUCTION(name, ...)                                                   \
    static dscomm_status_t call_##name(const perf_call_t *c,                   \
                                       dscomm_work_t **work)                   \
    {                                                                          \
        if (c->op == DSCOMM_PREMUL_SUM)                                        \
            return dscomm_##name##_premul_sum(c->group, c->send, c->recv,      \
                                              c->count, c->dtype, c->factor,   \
                                              __VA_ARGS__);                    \
        return dscomm_##name(c->group, c->send, c->recv, c->count, c->dtype,   \
                             c->op, __VA_ARGS__);                              \
    }

REDUCTION(all_reduce, work)
REDUCTION(reduce, c->root, work)
REDUCTION(reduce_scatter, work)

static dscomm_status_t call_barrier(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_barrier(c->group, work);
}

static dscomm_status_t call_monitored_barrier(const perf_call_t *c,
                                              dscomm_work_t **work)
{
    (void)work;
    return dscomm_monitored_barrier(c->group, DSCOMM_TIMEOUT_DEFAULT);
}

static dscomm_status_t call_broadcast_blob(const perf_call_t *c,
                                           dscomm_work_t **work)
{
    void *blob;
    size_t size;
    dscomm_status_t status = dscomm_broadcast_blob(
        c->group, c->send, c->total * c->size, c->root, &blob, &size);

    (void)work;
    if (status != DSCOMM_OK)
        return status;
    if (c->keep && size == c->total * c->size)
        memcpy(c->keep, blob, size);
    dscomm_blob_free(blob);
    return DSCOMM_OK;
}

/* The lengths are stored in the array that has the displacements of a _v
 * call. */
static dscomm_status_t call_all_gather_blob(const perf_call_t *c,
                                            dscomm_work_t **work)
{
    void *blob;
    size_t size = 0;
    dscomm_status_t status = dscomm_all_gather_blob(
        c->group, c->send, c->counts[c->rank] * c->size, &blob, c->displs);

    (void)work;
    if (status != DSCOMM_OK)
        return status;
    for (int i = 0; i < c->ranks; i++)
        size += c->displs[i];
    if (c->keep && size == c->total * c->size)
        memcpy(c->keep, blob, size);
    dscomm_blob_free(blob);
    return DSCOMM_OK;
}

static dscomm_status_t call_sendrecv(const perf_call_t *c, dscomm_work_t **work)
{
    dscomm_work_t *works[2] = {NULL, NULL};
    int next = (c->rank + 1) % c->ranks;
    int previous = (c->rank + c->ranks - 1) % c->ranks;
    dscomm_status_t status = dscomm_irecv(c->group, c->recv, c->count, c->dtype,
                                          previous, TAG, &works[0]);

    (void)work;
    if (status == DSCOMM_OK)
        status = dscomm_isend(c->group, c->send, c->count, c->dtype, next, TAG,
                              &works[1]);
    return perf_works_finish(works, 2, status);
}

/* Rank actor makes accesses, after the other one says that its memory is ready.
 */
static dscomm_status_t access_window(
    const perf_call_t *c, int actor,
    dscomm_status_t (*access)(const perf_call_t *c, dscomm_work_t **work))
{
    dscomm_work_t *works[WINDOW] = {NULL};
    dscomm_status_t status;

    if (c->rank > 1)
        return DSCOMM_OK;
    if (c->rank != actor) {
        status = dscomm_signal(c->group, actor, NULL);
        if (status < 0)
            return status;
        return dscomm_signal_wait(c->group, actor, DSCOMM_TIMEOUT_DEFAULT);
    }
    status = dscomm_signal_wait(c->group, 1 - actor, DSCOMM_TIMEOUT_DEFAULT);
    for (int i = 0; i < WINDOW && status == DSCOMM_OK; i++)
        status = access(c, &works[i]);
    status = perf_works_finish(works, WINDOW, status);
    return status < 0 ? status : dscomm_signal(c->group, 1 - actor, NULL);
}

static dscomm_status_t put_start(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_put(c->group, c->send, c->total * c->size, c->keys[1].recv, 0,
                      work);
}

static dscomm_status_t get_start(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_get(c->group, c->recv, c->total * c->size, c->keys[0].send, 0,
                      work);
}

static dscomm_status_t call_put(const perf_call_t *c, dscomm_work_t **work)
{
    (void)work;
    return access_window(c, 0, put_start);
}

static dscomm_status_t call_get(const perf_call_t *c, dscomm_work_t **work)
{
    (void)work;
    return access_window(c, 1, get_start);
}

static const perf_kind_t kinds[] = {
    [PERF_GETS_REDUCED] = {PERF_WHOLE, PERF_WHOLE, PERF_REDUCES, 2,
                           PERF_COPIED_ALL, 0},
    [PERF_GETS_REDUCED_ON_ROOT] = {PERF_WHOLE, PERF_WHOLE_ON_ROOT,
                                   PERF_REDUCES | PERF_ROOTED, 0,
                                   PERF_COPIED_REDUCED, 0},
    [PERF_GETS_REDUCED_PART] = {PERF_WHOLE, PERF_PART,
                                PERF_REDUCES | PERF_DIVIDED, 1,
                                PERF_COPIED_REDUCED, 0},
    [PERF_GETS_ROOT] = {PERF_NOTHING, PERF_WHOLE, PERF_ROOTED, 0,
                        PERF_COPIED_FROM_ONE, 0},
    [PERF_GETS_BLOB] = {PERF_WHOLE_ON_ROOT, PERF_WHOLE, PERF_ROOTED, 0,
                        PERF_COPIED_FROM_ONE, 0},
    [PERF_GETS_ALL] = {PERF_PART, PERF_WHOLE, PERF_DIVIDED, 1,
                       PERF_COPIED_GATHERED, 0},
    [PERF_GETS_ALL_ON_ROOT] = {PERF_PART, PERF_WHOLE_ON_ROOT,
                               PERF_ROOTED | PERF_DIVIDED, 1, PERF_COPIED_ONCE,
                               0},
    [PERF_GETS_PART] = {PERF_WHOLE_ON_ROOT, PERF_PART,
                        PERF_ROOTED | PERF_DIVIDED, 1, PERF_COPIED_ONCE, 0},
    [PERF_GETS_EXCHANGED] = {PERF_WHOLE, PERF_WHOLE, PERF_DIVIDED, 1,
                             PERF_COPIED_ALL, 0},
    [PERF_GETS_NOTHING] = {PERF_NOTHING, PERF_NOTHING, 0, 0, PERF_COPIED_NEVER,
                           0},
    [PERF_GETS_PREVIOUS] = {PERF_WHOLE, PERF_WHOLE, 0, 0, PERF_COPIED_ALL, 0},
    [PERF_GETS_OTHER] = {PERF_FIRST_TWO, PERF_FIRST_TWO, 0, 0, PERF_COPIED_ONCE,
                         0},
    [PERF_GETS_FIRST] = {PERF_FIRST_TWO, PERF_FIRST_TWO, 0, 0, PERF_COPIED_ONCE,
                         0},
    [PERF_GETS_LOWER] = {PERF_PAIRED, PERF_PAIRED, 0, 0, PERF_COPIED_PAIRED, 1},
    [PERF_GETS_PARTNER] = {PERF_PAIRED, PERF_PAIRED, 0, 0, PERF_COPIED_PARTNERS,
                           2},
};

static const perf_operation_t operations[] = {
    {"all_reduce", "everyone gets the reduction", DSCOMM_COLL_ALL_REDUCE,
     call_all_reduce, PERF_GETS_REDUCED, PERF_BOTH, 1},
    {"reduce", "the root gets the reduction", DSCOMM_COLL_REDUCE, call_reduce,
     PERF_GETS_REDUCED_ON_ROOT, PERF_BOTH, 1},
    {"reduce_scatter", "everyone gets a part of the reduction",
     DSCOMM_COLL_REDUCE_SCATTER, call_reduce_scatter, PERF_GETS_REDUCED_PART,
     PERF_BOTH, 1},
    {"reduce_scatter_v", "the same, with parts of different sizes",
     DSCOMM_COLL_REDUCE_SCATTER_V, call_reduce_scatter_v,
     PERF_GETS_REDUCED_PART, PERF_BOTH | PERF_UNEVEN, 1},
    {"broadcast", "everyone gets the root's elements", DSCOMM_COLL_BROADCAST,
     call_broadcast, PERF_GETS_ROOT, PERF_IN, 1},
    {"broadcast_blob", "the same, with a length only the root knows", -1,
     call_broadcast_blob, PERF_GETS_BLOB, PERF_OUT | PERF_HOST, 1},
    {"all_gather", "everyone gets everyone's elements", DSCOMM_COLL_ALL_GATHER,
     call_all_gather, PERF_GETS_ALL, PERF_BOTH, 1},
    {"all_gather_v", "the same, with parts of different sizes",
     DSCOMM_COLL_ALL_GATHER_V, call_all_gather_v, PERF_GETS_ALL,
     PERF_BOTH | PERF_UNEVEN, 1},
    {"all_gather_blob", "the same, with lengths only their owners know", -1,
     call_all_gather_blob, PERF_GETS_ALL, PERF_OUT | PERF_UNEVEN | PERF_HOST,
     1},
    {"gather", "the root gets everyone's elements", DSCOMM_COLL_GATHER,
     call_gather, PERF_GETS_ALL_ON_ROOT, PERF_BOTH, 1},
    {"gather_v", "the same, with parts of different sizes",
     DSCOMM_COLL_GATHER_V, call_gather_v, PERF_GETS_ALL_ON_ROOT,
     PERF_BOTH | PERF_UNEVEN, 1},
    {"scatter", "everyone gets a part of the root's elements",
     DSCOMM_COLL_SCATTER, call_scatter, PERF_GETS_PART, PERF_BOTH, 1},
    {"scatter_v", "the same, with parts of different sizes",
     DSCOMM_COLL_SCATTER_V, call_scatter_v, PERF_GETS_PART,
     PERF_BOTH | PERF_UNEVEN, 1},
    {"all_to_all", "everyone gets a part of everyone's elements",
     DSCOMM_COLL_ALL_TO_ALL, call_all_to_all, PERF_GETS_EXCHANGED, PERF_OUT, 1},
    {"all_to_all_v", "the same, with parts of different sizes",
     DSCOMM_COLL_ALL_TO_ALL_V, call_all_to_all_v, PERF_GETS_EXCHANGED,
     PERF_OUT | PERF_UNEVEN, 1},
    {"barrier", "everyone waits for everyone", DSCOMM_COLL_BARRIER,
     call_barrier, PERF_GETS_NOTHING, PERF_OUT, 1},
    {"monitored_barrier", "the same, by the rank 0 that names who is late", -1,
     call_monitored_barrier, PERF_GETS_NOTHING, PERF_OUT, 1},
    {"sendrecv", "everyone sends to the next rank", -1, call_sendrecv,
     PERF_GETS_PREVIOUS, PERF_OUT, 1},
    {"latency", "a message goes to and fro; one way", -1, perf_latency,
     PERF_GETS_OTHER, PERF_OUT, 2},
    {"bandwidth", "many messages one way, one answer; per message", -1,
     perf_bandwidth, PERF_GETS_FIRST, PERF_OUT, WINDOW},
    {"multi_pair", "the same for all pairs, ranks i and i + n / 2", -1,
     perf_multi_pair, PERF_GETS_LOWER, PERF_OUT, WINDOW},
    {"bidirectional", "many messages both ways, all pairs; per message", -1,
     perf_bidirectional, PERF_GETS_PARTNER, PERF_OUT, WINDOW},
    {"message_rate", "more messages both ways, all pairs; per message", -1,
     perf_many_messages, PERF_GETS_PARTNER, PERF_OUT, PERF_WINDOW_LONG},
    {"put", "rank 0 puts into memory of rank 1, many times; per put", -1,
     call_put, PERF_GETS_FIRST, PERF_OUT | PERF_ACCESSES | PERF_HOST, WINDOW},
    {"get", "rank 1 gets from memory of rank 0, many times; per get", -1,
     call_get, PERF_GETS_FIRST, PERF_OUT | PERF_ACCESSES | PERF_HOST, WINDOW},
    {"reduce+broadcast", "all_reduce by way of a root", -1,
     perf_reduce_broadcast, PERF_GETS_REDUCED, PERF_BOTH | PERF_ROOTED, 1},
    {"reduce_scatter+all_gather", "all_reduce by parts", -1,
     perf_reduce_scatter_all_gather, PERF_GETS_REDUCED,
     PERF_BOTH | PERF_BALANCED, 1},
    {"gather+broadcast", "all_gather by way of a root", -1,
     perf_gather_broadcast, PERF_GETS_ALL, PERF_BOTH | PERF_ROOTED, 1},
    {"scatter+all_gather", "broadcast by parts", -1, perf_scatter_all_gather,
     PERF_GETS_ROOT, PERF_IN | PERF_BALANCED, 1},
};

const perf_kind_t *perf_kind(const perf_operation_t *operation)
{
    return &kinds[operation->gets];
}

unsigned perf_flags(const perf_operation_t *operation)
{
    return operation->flags | perf_kind(operation)->flags;
}

bool perf_is_alike(const perf_operation_t *a, const perf_operation_t *b)
{
    return a->gets == b->gets &&
           (a->flags & PERF_UNEVEN) == (b->flags & PERF_UNEVEN);
}

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
    const double n = ranks;

    if (perf_kind(operation)->ways)
        return algbw * perf_kind(operation)->ways * (ranks / 2);
    return perf_kind(operation)->bus
               ? algbw * (perf_kind(operation)->bus * (n - 1) / n)
               : algbw;
}

double perf_message_rate(const perf_operation_t *operation, int ranks,
                         double time)
{
    const perf_kind_t *kind = perf_kind(operation);
    const int senders = kind->ways ? kind->ways * (ranks / 2) : 1;

    if (operation->messages < PERF_WINDOW || time <= 0)
        return 0;
    return senders * 1e6 / time;
}

double perf_copied(const perf_operation_t *operation, int ranks,
                   perf_place_t place)
{
    const double n = ranks, own = place == PERF_IN_PLACE;

    switch (perf_kind(operation)->copied) {
    case PERF_COPIED_ALL:
        return 1;
    case PERF_COPIED_FROM_ONE:
        return (1 + (n - 1)) / (2 * n);
    case PERF_COPIED_REDUCED:
        return (n + 1) / (2 * n);
    case PERF_COPIED_GATHERED:
        return (1 + n - own) / (2 * n);
    case PERF_COPIED_ONCE:
        return (n - own) / n / n;
    case PERF_COPIED_PAIRED:
        return ranks / 2 / n;
    case PERF_COPIED_PARTNERS:
        return 2 * (ranks / 2) / n;
    default:
        return 0;
    }
}

const char *perf_row_op(const perf_row_t *row)
{
    return perf_kind(row->operation)->flags & PERF_REDUCES
               ? dscomm_op_name(row->op)
               : "none";
}

/* Returns part `number` of total elements. The sizes of the parts are as 1 : 2
 * : ... : ranks; the last part also gets the remainder. */
static perf_block_t uneven_block(size_t total, int ranks, int number)
{
    size_t parts = (size_t)ranks * ((size_t)ranks + 1) / 2;
    size_t unit = total / parts;
    size_t before = (size_t)number * ((size_t)number + 1) / 2;
    perf_block_t block = {unit * before, unit * ((size_t)number + 1)};

    if (number == ranks - 1)
        block.count = total - block.offset;
    return block;
}

/* Returns part `number` of total elements; the first parts have one more if
 * they cannot be equal. */
static perf_block_t balanced_block(size_t total, int ranks, int number)
{
    size_t even = total / (size_t)ranks, more = total % (size_t)ranks;
    size_t before = (size_t)number;

    return (perf_block_t){even * before + MIN(before, more),
                          even + (before < more)};
}

perf_block_t perf_call_block(const perf_call_t *call, int who)
{
    size_t even = call->total / (size_t)call->ranks;

    if (call->operation->flags & PERF_UNEVEN)
        return uneven_block(call->total, call->ranks, who);
    if (call->operation->flags & PERF_BALANCED)
        return balanced_block(call->total, call->ranks, who);
    return (perf_block_t){even * (size_t)who, even};
}

/* Returns the number of elements that two ranks exchange. It depends on the sum
 * of their numbers, so that every rank sends as much as it receives. */
static size_t exchanged_count(const perf_call_t *call, int from, int to)
{
    if (call->operation->flags & PERF_UNEVEN)
        return uneven_block(call->total, call->ranks, (from + to) % call->ranks)
            .count;
    return call->total / (size_t)call->ranks;
}

perf_block_t perf_call_exchanged(const perf_call_t *call, int from, int to)
{
    perf_block_t block = {0, exchanged_count(call, from, to)};

    for (int i = 0; i < to; i++)
        block.offset += exchanged_count(call, from, i);
    return block;
}

static void fill_arrays(perf_call_t *call)
{
    bool exchange = call->operation->gets == PERF_GETS_EXCHANGED;

    for (int i = 0; i < call->ranks; i++) {
        perf_block_t block = exchange ? perf_call_exchanged(call, call->rank, i)
                                      : perf_call_block(call, i);
        call->counts[i] = block.count;
        call->displs[i] = block.offset;
    }
}

void perf_call_size(perf_call_t *call, size_t bytes)
{
    const perf_operation_t *operation = call->operation;
    size_t elements = bytes / call->size;

    if (perf_kind(operation)->send == PERF_NOTHING &&
        perf_kind(operation)->recv == PERF_NOTHING)
        elements = 0;
    call->count = elements;
    if (perf_kind(operation)->flags & PERF_DIVIDED) {
        call->count = elements / (size_t)call->ranks;
        elements = call->count * (size_t)call->ranks;
    }
    call->total = elements;
    if (operation->flags & (PERF_UNEVEN | PERF_BALANCED))
        fill_arrays(call);
}

static char *at(const perf_call_t *call, void *buffer, size_t element)
{
    return (char *)buffer + element * call->size;
}

/* Places the buffers of a call. In place, an operation that gathers has its
 * input in its own block of the receive buffer; one that scatters receives into
 * its own block of the send buffer. Every rank is prepared to be the root,
 * because the root may change with each call. */
void perf_call_place(perf_call_t *call, perf_place_t place, void *send_buffer,
                     void *recv_buffer)
{
    const perf_operation_t *operation = call->operation;
    size_t own = perf_call_block(call, call->rank).offset;

    call->send = send_buffer;
    call->recv = recv_buffer;
    if (place == PERF_OUT_OF_PLACE)
        return;
    if (perf_kind(operation)->send == PERF_PART)
        call->send = at(call, recv_buffer, own);
    else if (perf_kind(operation)->recv == PERF_PART)
        call->recv = at(call, send_buffer, own);
    else if (perf_kind(operation)->send == PERF_WHOLE)
        call->recv = send_buffer;
}
