/* SPDX-License-Identifier: BSD-3-Clause */
/* An arbitrary saved state: it is loaded, or refused with a sentence that
 * leaves the compressor unchanged. The input is tried as it is, and with the
 * SHA-256 that matches it. */
#include "config.h"

#include <dscomm/compression.h>
#include <dscomm/dscomm.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 20
#define HEADER_BYTES 80
#define SUM_BYTES 32
#define KINDS 4
#define STATE_MOST 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dscomm_compressor_t *compressors[KINDS];

static void must(int holds)
{
    if (!holds)
        abort();
}

static void open_all(void)
{
    static const struct {
        const char *codec;
        dscomm_geometry_t geometry;
    } kinds[KINDS] = {{"onebit", DSCOMM_GEOMETRY_NATIVE},
                      {"onebit", DSCOMM_GEOMETRY_DEEPSPEED},
                      {"int8", DSCOMM_GEOMETRY_NATIVE},
                      {"none", DSCOMM_GEOMETRY_NATIVE}};
    static dscomm_group_t *world; /* kept to the end, so that it is no leak */
    static dscomm_store_t *store;
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;

    must(!dscomm_store_open("memory://", NULL, &store));
    attr.backend = "self";
    attr.store = store;
    attr.has_rank = 1;
    attr.world_size = 1;
    must(!dscomm_init(&attr, &world));
    for (int i = 0; i < KINDS; i++) {
        dscomm_compressor_attr_t how = DSCOMM_COMPRESSOR_ATTR_INIT;

        how.codec = kinds[i].codec;
        how.geometry = kinds[i].geometry;
        must(!dscomm_compressor_create(world, COUNT, &how, &compressors[i]));
    }
}

static void try_state(dscomm_compressor_t *c, const uint8_t *data, size_t size)
{
    dscomm_compressor_info_t info = {.size = sizeof info};
    uint8_t before[STATE_MOST], after[STATE_MOST];
    dscomm_status_t status;

    must(!dscomm_compressor_info(c, &info) && info.state_bytes <= STATE_MOST);
    must(!dscomm_compressor_save(c, before, sizeof before));
    status = dscomm_compressor_load(c, data, size);
    must(!dscomm_compressor_save(c, after, sizeof after));
    if (status == DSCOMM_OK) {
        must(size >= info.state_bytes);
        must(!memcmp(after + HEADER_BYTES, data + HEADER_BYTES,
                     info.state_bytes - HEADER_BYTES - SUM_BYTES));
    } else {
        must(status == DSCOMM_ERR_PROTOCOL && *dscomm_last_error());
        must(!memcmp(before, after, info.state_bytes));
    }
}

static void try_all(const uint8_t *data, size_t size)
{
    for (int i = 0; i < KINDS; i++)
        try_state(compressors[i], data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GChecksum *checksum;
    gsize length = SUM_BYTES;
    uint8_t *copy;

    if (!data)
        return 0;
    if (!compressors[0])
        open_all();
    try_all(data, size);
    if (size < SUM_BYTES)
        return 0;
    copy = malloc(size);
    must(copy != NULL);
    memcpy(copy, data, size);
    checksum = g_checksum_new(G_CHECKSUM_SHA256);
    g_checksum_update(checksum, copy, (gssize)(size - SUM_BYTES));
    g_checksum_get_digest(checksum, copy + size - SUM_BYTES, &length);
    g_checksum_free(checksum);
    try_all(copy, size);
    free(copy);
    return 0;
}
