/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs the inputs of small calls and unpacks their results. A copy each way
 * costs less than a call. */
#include "config.h"
#include "lib/call/recording.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    void *recv; /* NULL: nothing to unpack */
    size_t bytes;
} part_t;

typedef struct {
    dscomm_bounce_t bounce;
    size_t count;
    char *buffer;
    part_t parts[];
} fusion_t;

size_t dscomm_priv_fusion_extent(const dscomm_call_t *calls, size_t count)
{
    size_t extent = 1, total = dscomm_priv_fusion_bytes(&calls->coll);

    if (!dscomm_priv_fusion_can(calls))
        return 1;
    while (extent < count && dscomm_priv_fusion_can(&calls[extent]) &&
           dscomm_priv_fusion_alike(&calls->coll, &calls[extent].coll) &&
           total + dscomm_priv_fusion_bytes(&calls[extent].coll) <=
               FUSION_WHOLE_MOST)
        total += dscomm_priv_fusion_bytes(&calls[extent++].coll);
    return extent;
}

static uint32_t power(uint32_t base, uint32_t exponent)
{
    uint32_t result = 1;

    for (; exponent; exponent /= 2) {
        result *= exponent % 2 ? base : 1;
        base *= base;
    }
    return result;
}

static dscomm_status_t fusion_finish(dscomm_bounce_t *bounce, size_t received)
{
    const fusion_t *fusion = (const fusion_t *)bounce;
    const char *from = fusion->buffer;

    (void)received;
    for (size_t i = 0; i < fusion->count; i++) {
        const part_t *part = &fusion->parts[i];

        if (part->recv)
            memcpy(part->recv, from, part->bytes);
        from += part->bytes;
    }
    return DSCOMM_OK;
}

static void fusion_free(dscomm_bounce_t *bounce)
{
    g_free(((fusion_t *)bounce)->buffer);
    g_free(bounce);
}

bool dscomm_priv_fusion_new(const dscomm_call_t *calls, size_t count,
                            dscomm_call_t *ret_call)
{
    fusion_t *fusion =
        g_try_malloc(sizeof *fusion + count * sizeof fusion->parts[0]);
    dscomm_coll_args_t *args = &ret_call->coll;
    size_t elements = 0, offset = 0;
    uint32_t fingerprint = 0, parts = 0;

    for (size_t i = 0; i < count; i++)
        elements += calls[i].coll.count;
    if (!fusion)
        return false;
    fusion->bounce = (dscomm_bounce_t){fusion_finish, fusion_free};
    fusion->count = count;
    fusion->buffer = g_try_malloc(MAX(elements * calls->coll.element, 1));
    if (!fusion->buffer) {
        g_free(fusion);
        return false;
    }
    *ret_call = *calls;
    for (size_t i = 0; i < count; i++) {
        const dscomm_coll_args_t *one = &calls[i].coll;
        size_t bytes = dscomm_priv_fusion_bytes(one);
        /* a broadcast's root, whose buffer is not written */
        const int only_sends = one->coll == DSCOMM_COLL_BROADCAST && one->send;

        fusion->parts[i] =
            (part_t){only_sends || !bytes ? NULL : one->recv, bytes};
        if (one->send && bytes)
            memcpy(fusion->buffer + offset, one->send, bytes);
        if (one->send)
            args->send = fusion->buffer;
        offset += bytes;
        fingerprint =
            fingerprint * power(FUSION_BASE, calls[i].parts) + one->fingerprint;
        parts += calls[i].parts;
    }
    args->fingerprint = fingerprint;
    ret_call->parts = parts;
    args->count = elements;
    args->recv = fusion->buffer;
    ret_call->bounce = &fusion->bounce;
    return true;
}
