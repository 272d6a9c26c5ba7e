/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs what small calls send, and unpacks what they receive: a copy each way
 * costs less than a call. */
#include "config.h"
#include "lib/fusion.h"

#include <stdlib.h>
#include <string.h>

/* Longer ones are bound by bandwidth, not by the call. */
#define PART_MOST ((size_t)32 << 10)
#define WHOLE_MOST ((size_t)1 << 20)

typedef struct {
    void *recv; /* NULL: it has what it gets */
    size_t bytes;
} part_t;

struct dscomm_fusion {
    size_t count;
    char *buffer;
    part_t parts[];
};

static size_t bytes_of(const dscomm_call_t *call)
{
    return call->coll.count * call->coll.element;
}

/* Element by element the same whatever lies beside it. A rank's factor is its
 * own, so other ranks cannot know whether two calls have the same. */
static int can_fuse(const dscomm_call_t *call)
{
    const dscomm_coll_args_t *args = &call->coll;

    return call->kind == CALL_COLLECTIVE &&
           (args->coll == DSCOMM_COLL_ALL_REDUCE ||
            args->coll == DSCOMM_COLL_BROADCAST) &&
           args->op != DSCOMM_PREMUL_SUM && bytes_of(call) <= PART_MOST;
}

static int alike(const dscomm_call_t *a, const dscomm_call_t *b)
{
    return a->coll.coll == b->coll.coll && a->coll.dtype == b->coll.dtype &&
           a->coll.op == b->coll.op && a->coll.root == b->coll.root;
}

size_t dscomm_priv_fusion_extent(const dscomm_call_t *calls, size_t count)
{
    size_t extent = 1, total = bytes_of(calls);

    if (!can_fuse(calls))
        return 1;
    while (extent < count && can_fuse(&calls[extent]) &&
           alike(calls, &calls[extent]) &&
           total + bytes_of(&calls[extent]) <= WHOLE_MOST)
        total += bytes_of(&calls[extent++]);
    return extent;
}

/* Other counts in between are another call, even where the sum is the same. */
static uint32_t sign(uint32_t fingerprint, const dscomm_call_t *call)
{
    return (fingerprint ^ call->coll.fingerprint) * UINT32_C(0x9e3779b1);
}

/* A broadcast's root, whose buffer nobody writes to. */
static int is_source(const dscomm_coll_args_t *args)
{
    return args->coll == DSCOMM_COLL_BROADCAST && args->send;
}

dscomm_fusion_t *dscomm_priv_fusion_new(const dscomm_call_t *calls,
                                        size_t count, dscomm_call_t *ret_call)
{
    dscomm_fusion_t *fusion =
        g_try_malloc(sizeof *fusion + count * sizeof fusion->parts[0]);
    dscomm_coll_args_t *args = &ret_call->coll;
    size_t elements = 0, offset = 0;

    for (size_t i = 0; i < count; i++)
        elements += calls[i].coll.count;
    if (!fusion)
        return NULL;
    fusion->count = count;
    fusion->buffer = g_try_malloc(MAX(elements * calls->coll.element, 1));
    if (!fusion->buffer) {
        g_free(fusion);
        return NULL;
    }
    *ret_call = *calls;
    for (size_t i = 0; i < count; i++) {
        const dscomm_coll_args_t *one = &calls[i].coll;
        size_t bytes = bytes_of(&calls[i]);

        fusion->parts[i] =
            (part_t){is_source(one) || !bytes ? NULL : one->recv, bytes};
        if (one->send && bytes)
            memcpy(fusion->buffer + offset, one->send, bytes);
        if (one->send)
            args->send = fusion->buffer;
        offset += bytes;
        args->fingerprint = sign(i ? args->fingerprint : 0, &calls[i]);
    }
    args->count = elements;
    args->recv = fusion->buffer;
    ret_call->fusion = fusion;
    return fusion;
}

size_t dscomm_priv_fusion_count(const dscomm_fusion_t *fusion)
{
    return fusion ? fusion->count : 1;
}

void dscomm_priv_fusion_unpack(const dscomm_fusion_t *fusion)
{
    const char *from = fusion->buffer;

    for (size_t i = 0; i < fusion->count; i++) {
        const part_t *part = &fusion->parts[i];

        if (part->recv)
            memcpy(part->recv, from, part->bytes);
        from += part->bytes;
    }
}

void dscomm_priv_fusion_free(dscomm_fusion_t *fusion)
{
    if (fusion)
        g_free(fusion->buffer);
    g_free(fusion);
}
