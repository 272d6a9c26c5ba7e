/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocks of buffers that belong to each rank, see operations.h. */
#include "config.h"

#include "tools/perf/operations.h"

/* The part of total with that number, of parts whose sizes are as 1 to ranks;
 * what does not divide goes to the last one. */
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

perf_block_t perf_call_block(const perf_call_t *call, int who)
{
    size_t even = call->total / (size_t)call->ranks;

    if (call->operation->flags & PERF_UNEVEN)
        return uneven_block(call->total, call->ranks, who);
    return (perf_block_t){even * (size_t)who, even};
}

/* The size of an exchange depends on the sum of both ranks, so that every rank
 * sends as much as it receives. */
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
    gboolean exchange = call->operation->gets == PERF_GETS_EXCHANGED;

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

    if (operation->send == PERF_NOTHING && operation->recv == PERF_NOTHING)
        elements = 0;
    call->count = elements;
    if (operation->flags & PERF_DIVIDED) {
        call->count = elements / (size_t)call->ranks;
        elements = call->count * (size_t)call->ranks;
    }
    call->total = elements;
    if (operation->flags & PERF_UNEVEN)
        fill_arrays(call);
}

static char *at(const perf_call_t *call, void *buffer, size_t element)
{
    return (char *)buffer + element * call->size;
}

/* Operations that gather have the own block of what they receive as input;
 * those that scatter receive into the own block of what they send. Every rank
 * is ready to be the root, which may be another one in each call. */
void perf_call_place(perf_call_t *call, perf_place_t place, void *send_buffer,
                     void *recv_buffer)
{
    const perf_operation_t *operation = call->operation;
    size_t own = perf_call_block(call, call->rank).offset;

    call->send = send_buffer;
    call->recv = recv_buffer;
    if (place == PERF_OUT_OF_PLACE)
        return;
    if (operation->send == PERF_PART)
        call->send = at(call, recv_buffer, own);
    else if (operation->recv == PERF_PART)
        call->recv = at(call, send_buffer, own);
    else if (operation->send == PERF_WHOLE)
        call->recv = send_buffer;
}
