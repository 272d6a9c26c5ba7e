/* SPDX-License-Identifier: BSD-3-Clause */
/* Compressors: made, asked, freed. */
#include "config.h"

#include "compression/compressor.h"
#include "lib/attr.h"
#include "compression/device.h"

#include <dscomm/dscomm.h>
#include <string.h>

#define TILE 1024
#define ALIGNMENT 64
#define ROW_ALIGNMENT 16
#define NAME_BYTES 16
#define ELEMENTS_MOST ((size_t)PTRDIFF_MAX / sizeof(double) / 2)

/* What all ranks must agree on; sent as it is. */
typedef struct {
    char codec[NAME_BYTES];
    uint64_t count, padded;
    double density;
    int32_t geometry, op, feedback;
    int32_t memory; /* 0: this rank has none */
} terms_t;

static size_t round_up(size_t count, size_t unit)
{
    return count / unit * unit + (count % unit ? unit : 0);
}

static size_t common_divisor(size_t a, size_t b)
{
    while (b) {
        size_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* DeepSpeed's: a multiple of n * lcm(n, 8). */
static size_t padding_unit(size_t ranks)
{
    return ranks * (ranks / common_divisor(ranks, 8) * 8);
}

static dscomm_status_t check_attr(const char *name,
                                  const dscomm_compressor_attr_t *attr)
{
    if (attr->geometry != DSCOMM_GEOMETRY_NATIVE &&
        attr->geometry != DSCOMM_GEOMETRY_DEEPSPEED)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %d is no geometry", name,
                           (int)attr->geometry);
    if (attr->op != DSCOMM_AVG && attr->op != DSCOMM_SUM)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: op is %s; it can be avg or sum", name,
                           dscomm_op_name(attr->op));
    if (attr->feedback < -1 || attr->feedback > 1)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: feedback is %d; it can be 0, 1 or -1", name,
                           attr->feedback);
    if (!(attr->density > 0 && attr->density <= 1))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: density is %g; it is in (0, 1]", name,
                           attr->density);
    return DSCOMM_OK;
}

static dscomm_status_t check_geometry(const char *name,
                                      const dscomm_compressor_t *c,
                                      const dscomm_compressor_attr_t *attr,
                                      int ranks)
{
    if (c->count > ELEMENTS_MOST || attr->padded > ELEMENTS_MOST)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: %zu elements are more than memory can hold",
                           name, MAX(c->count, attr->padded));
    if (c->geometry == DSCOMM_GEOMETRY_NATIVE)
        return attr->padded ? dscomm_fail(DSCOMM_ERR_INVALID,
                                          "%s: padded is %zu, but the native "
                                          "geometry has no padding",
                                          name, attr->padded)
                            : DSCOMM_OK;
    if (strcmp(c->codec->name, "onebit") || !c->codec->feedback)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: the geometry of DeepSpeed is for codec onebit, "
                           "not %s",
                           name, c->codec->name);
    if (attr->padded &&
        (attr->padded < c->count || attr->padded % (8 * (size_t)ranks)))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: padded is %zu; it is a multiple of 8 times %d "
                           "ranks, and not less than the count of %zu",
                           name, attr->padded, ranks, c->count);
    return DSCOMM_OK;
}

/* The parts, and the bytes of a row. */
static void lay_out(dscomm_compressor_t *c, size_t padded, int ranks)
{
    size_t n = (size_t)ranks;

    if (c->geometry == DSCOMM_GEOMETRY_DEEPSPEED && c->count) {
        c->padded = padded ? padded : round_up(c->count, padding_unit(n));
        c->chunk = c->padded / n;
    } else {
        c->padded = c->count;
        c->chunk = round_up(c->count / n + (c->count % n != 0), TILE);
    }
    c->row = c->count ? round_up(sizeof(dscomm_row_header_t) +
                                     c->codec->bytes(&c->args, c->chunk),
                                 ROW_ALIGNMENT)
                      : 0;
}

static float *new_errors(size_t count)
{
    void *memory = NULL;

    if (posix_memalign(&memory, ALIGNMENT, MAX(count, 1) * sizeof(float)))
        return NULL;
    return memset(memory, 0, count * sizeof(float));
}

static void destroy(dscomm_compressor_t *c)
{
    dscomm_priv_device_free(c->side);
    dscomm_priv_channel_give(c->channel);
    free(c->worker);
    free(c->server);
    g_free(c->mask);
    g_free(c);
}

/* What differs between two ranks' terms, in words; NULL: nothing. */
static const char *difference(const terms_t *a, const terms_t *b)
{
    if (strcmp(a->codec, b->codec))
        return "the codec";
    if (a->count != b->count)
        return "the count";
    if (a->geometry != b->geometry || a->padded != b->padded)
        return "the geometry";
    if (a->op != b->op)
        return "the operator";
    if (a->feedback != b->feedback || a->density != b->density)
        return "the attributes";
    return NULL;
}

static dscomm_status_t compare(const char *name, const dscomm_group_t *group,
                               const terms_t *all)
{
    for (int r = 0; r < dscomm_group_size(group); r++) {
        const char *what = difference(&all[0], &all[r]);

        if (what)
            return dscomm_fail(DSCOMM_ERR_MISMATCH,
                               "%s on group '%s': %s of rank %d differs from "
                               "that of rank 0 (%s, count %" G_GUINT64_FORMAT
                               " and %s, count %" G_GUINT64_FORMAT ")",
                               name, dscomm_group_name(group), what, r,
                               all[r].codec, all[r].count, all[0].codec,
                               all[0].count);
    }
    for (int r = 0; r < dscomm_group_size(group); r++)
        if (!all[r].memory)
            return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                               "%s on group '%s': rank %d has no memory for "
                               "the errors of %" G_GUINT64_FORMAT " elements",
                               name, dscomm_group_name(group), r, all[r].count);
    return DSCOMM_OK;
}

static uint32_t hash(const void *bytes, size_t count, uint32_t seed)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < count; i++)
        seed = (seed ^ at[i]) * UINT32_C(16777619);
    return seed;
}

/* All ranks learn whether they have asked for the same. */
static dscomm_status_t agree(const char *name, dscomm_group_t *group,
                             dscomm_compressor_t *c)
{
    int ranks = dscomm_group_size(group);
    terms_t mine, *all = g_new0(terms_t, (gsize)ranks);
    dscomm_status_t status;

    memset(&mine, 0, sizeof mine);
    g_strlcpy(mine.codec, c->codec->name, sizeof mine.codec);
    mine.count = c->count;
    mine.padded = c->padded;
    mine.density = c->args.density;
    mine.geometry = (int32_t)c->geometry;
    mine.op = (int32_t)c->op;
    mine.feedback = c->feedback;
    c->signature = hash(&mine, sizeof mine, UINT32_C(2166136261));
    mine.memory = c->server && (c->worker || !c->feedback);
    status =
        dscomm_all_gather(group, &mine, all, sizeof mine, DSCOMM_UINT8, NULL);
    if (status == DSCOMM_OK)
        status = compare(name, group, all);
    g_free(all);
    return status;
}

static dscomm_compressor_t *new_compressor(size_t count,
                                           const dscomm_compressor_attr_t *attr)
{
    dscomm_compressor_t *c = g_new0(dscomm_compressor_t, 1);

    c->codec = dscomm_codec_find(attr->codec ? attr->codec : "onebit");
    c->args.size = sizeof c->args;
    c->args.density = attr->density;
    c->geometry = attr->geometry;
    c->op = attr->op;
    c->feedback =
        attr->feedback < 0 && c->codec ? c->codec->feedback : attr->feedback;
    c->count = count;
    return c;
}

/* Everything that all ranks do together. */
static dscomm_status_t open_compressor(const char *name, dscomm_group_t *group,
                                       dscomm_compressor_t *c)
{
    dscomm_status_t status;

    if (c->feedback)
        c->worker = new_errors(c->padded);
    c->server = new_errors(dscomm_priv_part_count(c, dscomm_group_rank(group)));
    status = agree(name, group, c);
    if (status == DSCOMM_OK)
        status = dscomm_priv_channel_take(group, &c->channel);
    if (status < 0)
        return status;
    c->tag = c->channel->tags;
    c->signature = hash(&c->tag, sizeof c->tag, c->signature);
    c->channel->tags = (c->channel->tags + 2) & DSCOMM_TAG_MAX;
    return DSCOMM_OK;
}

static dscomm_status_t create(const char *name, dscomm_group_t *group,
                              size_t count,
                              const dscomm_compressor_attr_t *attr,
                              dscomm_compressor_t **ret_compressor)
{
    dscomm_compressor_t *c;
    dscomm_status_t status = check_attr(name, attr);

    if (status < 0)
        return status;
    c = new_compressor(count, attr);
    if (!c->codec)
        status = dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                             "%s: there is no codec '%s'; there are %s", name,
                             attr->codec, dscomm_codec_names());
    if (status == DSCOMM_OK)
        status = check_geometry(name, c, attr, dscomm_group_size(group));
    if (status == DSCOMM_OK) {
        lay_out(c, attr->padded, dscomm_group_size(group));
        status = open_compressor(name, group, c);
    }
    if (status < 0)
        destroy(c);
    else
        *ret_compressor = c;
    return status;
}

static dscomm_status_t create_checked(const char *name, dscomm_group_t *group,
                                      size_t count,
                                      const dscomm_compressor_attr_t *attr,
                                      const char *codec,
                                      dscomm_compressor_t **ret_compressor)
{
    dscomm_compressor_attr_t own = DSCOMM_COMPRESSOR_ATTR_INIT;
    dscomm_status_t status;

    if (!group || !ret_compressor)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s is NULL", name,
                           group ? "ret_compressor" : "group");
    status = dscomm_priv_attr_read(name, "DSCOMM_COMPRESSOR_ATTR_INIT", attr,
                                   sizeof own, &own);
    if (status < 0)
        return status;
    if (codec)
        own.codec = codec;
    return create(name, group, count, &own, ret_compressor);
}

dscomm_status_t dscomm_compressor_create(dscomm_group_t *group, size_t count,
                                         const dscomm_compressor_attr_t *attr,
                                         dscomm_compressor_t **ret_compressor)
{
    return create_checked("dscomm_compressor_create", group, count, attr, NULL,
                          ret_compressor);
}

dscomm_status_t dscomm_onebit_create(dscomm_group_t *group, size_t count,
                                     const dscomm_compressor_attr_t *attr,
                                     dscomm_onebit_t **ret_onebit)
{
    return create_checked("dscomm_onebit_create", group, count, attr, "onebit",
                          ret_onebit);
}

dscomm_status_t dscomm_priv_compressor_idle(const dscomm_compressor_t *c,
                                            const char *name)
{
    if (!c)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: compressor is NULL", name);
    if (g_atomic_int_get(&c->busy))
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "%s: an all_reduce of this compressor is not "
                           "complete yet; wait for its work first",
                           name);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_compressor_free(dscomm_compressor_t *compressor)
{
    dscomm_status_t status;

    if (!compressor)
        return DSCOMM_OK;
    status = dscomm_priv_compressor_idle(compressor, "dscomm_compressor_free");
    if (status == DSCOMM_OK)
        destroy(compressor);
    return status;
}

/* To the other ranks: n - 1 parts of its own buffer, its own part n - 1
 * times. */
static size_t wire_bytes(const dscomm_compressor_t *c)
{
    return 2 * (size_t)(c->channel->ranks - 1) * c->row;
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
