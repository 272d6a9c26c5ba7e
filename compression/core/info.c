/* SPDX-License-Identifier: BSD-3-Clause */
/* The description of a compressor that a program asks for. */
#include "config.h"

#include "compression/core/compressor.h"

#include <dscomm/dscomm.h>
#include <string.h>

/* Of the row of rank's part, without filling. */
static size_t sent_bytes(const dscomm_compressor_t *c, int rank)
{
    size_t count = dscomm_priv_part_count(c, rank);

    return c->count
               ? sizeof(dscomm_row_header_t) + dscomm_priv_code_bytes(c, count)
               : 0;
}

/* To each of the other ranks: its part of the buffer, and the own part. */
static size_t wire_bytes(const dscomm_compressor_t *c)
{
    int own = c->channel->rank;
    size_t bytes = 0;

    for (int r = 0; r < c->channel->ranks; r++)
        if (r != own)
            bytes += sent_bytes(c, r) + sent_bytes(c, own);
    return bytes;
}

dscomm_status_t dscomm_compressor_info(const dscomm_compressor_t *compressor,
                                       dscomm_compressor_info_t *ret_info)
{
    const char *name = "dscomm_compressor_info";
    const dscomm_compressor_t *c = compressor;
    dscomm_compressor_info_t info;

    if (!c || !ret_info)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s is NULL", name,
                           c ? "ret_info" : "compressor");
    if (ret_info->size < sizeof info.size)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: ret_info->size is %zu; set it to the size of "
                           "the structure",
                           name, ret_info->size);
    info = (dscomm_compressor_info_t){
        .size = MIN(ret_info->size, sizeof info),
        .codec = c->codec->name,
        .geometry = c->geometry,
        .op = c->op,
        .count = c->count,
        .padded = c->padded,
        .chunk = c->chunk,
        .server = dscomm_priv_part_count(c, c->channel->rank),
        .wire_bytes = wire_bytes(c),
        .state_bytes = dscomm_priv_state_bytes(c),
    };
    memcpy(ret_info, &info, info.size);
    return DSCOMM_OK;
}
