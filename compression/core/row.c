/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows, which are encoded parts: their sizes and signatures. */
#include "config.h"

#include "compression/core/compressor.h"

#include <dscomm/dscomm.h>

/* Upper limit of the bytes of a block, so that the size of a row cannot
 * overflow. */
#define CODE_MOST ((size_t)16 * DSCOMM_CODEC_BLOCK)
#define ROW_ALIGNMENT 16

/* Bytes of the incomplete block at the end of count elements. */
static size_t rest_bytes(const dscomm_compressor_t *c, size_t count)
{
    size_t rest = count % DSCOMM_CODEC_BLOCK;

    return rest ? c->codec->bytes(&c->args, rest) : 0;
}

size_t dscomm_priv_code_bytes(const dscomm_compressor_t *c, size_t count)
{
    return count / DSCOMM_CODEC_BLOCK * c->block + rest_bytes(c, count);
}

/* A row has room for a whole part, and for the last part, which may be shorter
 * but need more bytes. Packets end between blocks; no block needs more bytes
 * than a whole one. */
dscomm_status_t dscomm_priv_size_rows(dscomm_compressor_t *c)
{
    size_t last = c->chunk ? c->padded % c->chunk : 0, row;

    c->block = c->codec->bytes(&c->args, DSCOMM_CODEC_BLOCK);
    if (c->block > CODE_MOST)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "codec %s needs %zu bytes for a block of %d "
                           "elements; %zu are the most",
                           c->codec->name, c->block, DSCOMM_CODEC_BLOCK,
                           CODE_MOST);
    if (MAX(rest_bytes(c, c->chunk), rest_bytes(c, last)) > c->block)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "codec %s needs more bytes for a part of a block "
                           "than for a whole one, %zu",
                           c->codec->name, c->block);
    row = sizeof(dscomm_row_header_t) + MAX(dscomm_priv_code_bytes(c, c->chunk),
                                            dscomm_priv_code_bytes(c, last));
    if (c->count)
        c->row = dscomm_priv_round_up(row, ROW_ALIGNMENT);
    return DSCOMM_OK;
}

/* The bytes of the row for rank's part, without padding. */
static size_t sent_bytes(const dscomm_compressor_t *c, int rank)
{
    size_t count = dscomm_priv_part_count(c, rank);

    return c->count
               ? sizeof(dscomm_row_header_t) + dscomm_priv_code_bytes(c, count)
               : 0;
}

size_t dscomm_priv_wire_bytes(const dscomm_compressor_t *c)
{
    int own = c->channel->rank;
    size_t bytes = 0;

    for (int r = 0; r < c->channel->ranks; r++)
        if (r != own)
            bytes += sent_bytes(c, r) + sent_bytes(c, own);
    return bytes;
}

uint32_t dscomm_priv_hash(const void *bytes, size_t count, uint32_t seed)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < count; i++)
        seed = (seed ^ at[i]) * UINT32_C(16777619);
    return seed;
}

uint32_t dscomm_priv_row_signature(const dscomm_compressor_t *c,
                                   dscomm_dtype_t dtype)
{
    const int32_t number = (int32_t)dtype;

    return dscomm_priv_hash(&number, sizeof number, c->signature);
}
