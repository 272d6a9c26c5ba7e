/* SPDX-License-Identifier: BSD-3-Clause */
/* Making and freeing compressors, and moving them to another group. */
#include "config.h"

#include "compression/core/window.h"
#include "compression/device/device.h"
#include "lib/base/attr.h"

#include <dscomm/dscomm.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TILE 1024
#define ALIGNMENT 64
#define NAME_BYTES 16
#define TEXT_BYTES 184
#define ELEMENTS_MOST ((size_t)PTRDIFF_MAX / sizeof(double) / 4)

/* The terms of a compressor, which must be equal on all ranks. */
typedef struct {
    char codec[NAME_BYTES];
    uint64_t count, padded;
    double parameter;
    int32_t geometry, op, feedback, unused;
} terms_t;

/* An offer: what each rank sends to all before a compressor is made; in the
 * byte order of this machine. */
typedef struct {
    terms_t terms;
    dscomm_origin_t origin;
    int64_t window; /* its wish */
    uint32_t oldest; /* the first page of the windows that the rank has */
    int32_t
        /* a status: DSCOMM_OK, or why the rank refuses; text has the
         * sentence */
        refusal;
    char text[TEXT_BYTES];
} offer_t;

/* The padded count in DeepSpeed's geometry is a multiple of n * lcm(n, 8) for n
 * ranks. The greatest common divisor of n and 8 is a power of two. */
static size_t padding_unit(size_t ranks)
{
    return ranks * (ranks / MIN(ranks & -ranks, 8) * 8);
}

static dscomm_status_t check_attr(const dscomm_compressor_attr_t *attr)
{
    if (attr->geometry != DSCOMM_GEOMETRY_NATIVE &&
        attr->geometry != DSCOMM_GEOMETRY_DEEPSPEED)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%d is no geometry",
                           (int)attr->geometry);
    if (attr->sum != 0 && attr->sum != 1)
        return dscomm_fail(
            DSCOMM_ERR_INVALID,
            "sum is %d; it can be 0, for the mean, or 1: there is "
            "no compression for other operators",
            attr->sum);
    if (attr->feedback != DSCOMM_FEEDBACK_CODEC &&
        attr->feedback != DSCOMM_FEEDBACK_ON &&
        attr->feedback != DSCOMM_FEEDBACK_OFF)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "feedback is %d; it can be 0, 1 or 2",
                           (int)attr->feedback);
    return DSCOMM_OK;
}

static dscomm_status_t check_geometry(const dscomm_compressor_t *c,
                                      const dscomm_compressor_attr_t *attr,
                                      int ranks)
{
    if (c->count > ELEMENTS_MOST || attr->padded > ELEMENTS_MOST)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%zu elements are more than memory can hold",
                           MAX(c->count, attr->padded));
    if (c->geometry == DSCOMM_GEOMETRY_NATIVE)
        return attr->padded ? dscomm_fail(DSCOMM_ERR_INVALID,
                                          "padded is %zu, but the native "
                                          "geometry has no padding",
                                          attr->padded)
                            : DSCOMM_OK;
    if (strcmp(c->codec->name, "onebit") || !c->codec->feedback)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "the geometry of DeepSpeed is for codec onebit, "
                           "not %s",
                           c->codec->name);
    if (attr->padded &&
        (attr->padded < c->count || attr->padded % (8 * (size_t)ranks)))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "padded is %zu; it is a multiple of 8 times %d "
                           "ranks, and not less than the count of %zu",
                           attr->padded, ranks, c->count);
    return DSCOMM_OK;
}

static dscomm_status_t take_parameter(dscomm_compressor_t *c, double parameter)
{
    const dscomm_codec_t *codec = c->codec;

    c->args.user = codec->user;
    c->args.parameter = parameter == 0 ? codec->parameter : parameter;
    if (parameter == 0 || (parameter > 0 && parameter <= codec->parameter_most))
        return DSCOMM_OK;
    if (codec->parameter_most > 0)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "the parameter is %g; that of codec %s is in "
                           "(0, %g]",
                           parameter, codec->name, codec->parameter_most);
    return dscomm_fail(DSCOMM_ERR_INVALID,
                       "the parameter is %g, but codec %s has none", parameter,
                       codec->name);
}

/* The parts. */
static void lay_out(dscomm_compressor_t *c, size_t padded, int ranks)
{
    size_t n = (size_t)ranks;

    if (c->geometry == DSCOMM_GEOMETRY_DEEPSPEED && c->count) {
        c->padded =
            padded ? padded : dscomm_priv_round_up(c->count, padding_unit(n));
        c->chunk = c->padded / n;
    } else {
        c->padded = c->count;
        c->chunk =
            dscomm_priv_round_up(c->count / n + (c->count % n != 0), TILE);
    }
}

static float *new_errors(size_t count)
{
    void *memory = NULL;

    if (posix_memalign(&memory, ALIGNMENT, MAX(count, 1) * sizeof(float)))
        return NULL;
    return memset(memory, 0, count * sizeof(float));
}

static void compressor_destroy(dscomm_compressor_t *c)
{
    dscomm_priv_device_free(c);
    if (c->channel)
        c->channel->windows.demand -=
            dscomm_priv_window_need(c, c->channel->ranks);
    dscomm_priv_channel_give(c->channel);
    free(c->worker);
    free(c->server);
    free(c->kept);
    g_free(c->mask);
    g_free(c);
}

/* Returns the name of a term that differs between two ranks, or NULL. */
static const char *terms_difference(const terms_t *a, const terms_t *b)
{
    if (memcmp(a->codec, b->codec, sizeof a->codec))
        return "the codec";
    if (a->count != b->count)
        return "the count";
    if (a->geometry != b->geometry || a->padded != b->padded)
        return "the geometry";
    if (a->op != b->op)
        return "the operator";
    if (a->feedback != b->feedback || a->parameter != b->parameter)
        return "the attributes";
    return NULL;
}

/* Fails if a rank has refused, with the sentence of the first one. */
static dscomm_status_t offers_check_refusals(const char *name,
                                             const dscomm_group_t *group,
                                             const offer_t *all)
{
    for (int r = 0; r < dscomm_group_size(group); r++)
        if (all[r].refusal != DSCOMM_OK)
            return dscomm_fail(all[r].refusal < 0
                                   ? (dscomm_status_t)all[r].refusal
                                   : DSCOMM_ERR_PROTOCOL,
                               "%s on group '%s': rank %d says: %.*s", name,
                               dscomm_group_name(group), r,
                               (int)sizeof all[r].text, all[r].text);
    return DSCOMM_OK;
}

static const char *terms_describe(const terms_t *terms, char *ret_text)
{
    snprintf(ret_text, TEXT_BYTES,
             "%.*s, count %" PRIu64 ", geometry %d, padded %" PRIu64
             ", %s, feedback %d, parameter %g",
             NAME_BYTES, terms->codec, terms->count, terms->geometry,
             terms->padded, terms->op == DSCOMM_SUM ? "sum" : "mean",
             terms->feedback, terms->parameter);
    return ret_text;
}

static dscomm_status_t offers_compare(const char *name,
                                      const dscomm_group_t *group,
                                      const offer_t *all)
{
    const terms_t *first = &all[0].terms;
    char texts[2][TEXT_BYTES];

    for (int r = 0; r < dscomm_group_size(group); r++) {
        const terms_t *other = &all[r].terms;
        const char *what = terms_difference(first, other);

        if (what)
            return dscomm_fail(DSCOMM_ERR_MISMATCH,
                               "%s on group '%s': %s of rank %d and rank 0 "
                               "differ (%s; and %s)",
                               name, dscomm_group_name(group), what, r,
                               terms_describe(other, texts[0]),
                               terms_describe(first, texts[1]));
    }
    return DSCOMM_OK;
}

static void state_terms(dscomm_compressor_t *c, terms_t *ret_terms)
{
    g_strlcpy(ret_terms->codec, c->codec->name, sizeof ret_terms->codec);
    ret_terms->count = c->count;
    ret_terms->padded = c->padded;
    ret_terms->parameter = c->args.parameter;
    ret_terms->geometry = (int32_t)c->geometry;
    ret_terms->op = (int32_t)c->op;
    ret_terms->feedback = c->feedback;
    c->signature =
        dscomm_priv_hash(ret_terms, sizeof *ret_terms, DSCOMM_HASH_SEED);
}

static dscomm_window_wishes_t offers_collect(const offer_t *all, int ranks)
{
    dscomm_window_wishes_t wishes = {all[0].window, all[0].window, 0,
                                     all[0].oldest};

    for (int r = 1; r < ranks; r++) {
        wishes.most = MAX(wishes.most, all[r].window);
        wishes.from = MAX(wishes.from, all[r].oldest);
        if (all[r].window < wishes.least) {
            wishes.least = all[r].window;
            wishes.rank = r;
        }
    }
    return wishes;
}

/* Exchanges offers, and fails on all ranks if one has refused or has other
 * terms. If the exchange itself fails, this rank's own refusal is the failure.
 * old: the compressor whose errors c gets, or NULL. The caller frees
 * *ret_all. */
static dscomm_status_t offers_exchange(const char *name, dscomm_group_t *group,
                                       dscomm_compressor_t *c,
                                       const dscomm_compressor_t *old,
                                       dscomm_status_t refusal,
                                       offer_t **ret_all)
{
    offer_t mine, *all = g_try_new(offer_t, (gsize)dscomm_group_size(group));
    dscomm_status_t status;

    memset(&mine, 0, sizeof mine);
    mine.refusal = (int32_t)refusal;
    if (refusal == DSCOMM_OK) {
        state_terms(c, &mine.terms);
        mine.origin = dscomm_priv_origin(old);
        mine.window = dscomm_priv_window_wish(c, group);
        mine.oldest = dscomm_priv_window_oldest(group);
    } else {
        g_strlcpy(mine.text, dscomm_last_error(), sizeof mine.text);
    }
    if (!all)
        return dscomm_priv_channel_fail(group);
    status =
        dscomm_all_gather(group, &mine, all, sizeof mine, DSCOMM_UINT8, NULL);
    if (status < 0 && refusal < 0)
        status = dscomm_fail(refusal, "%s: %s", name, mine.text);
    if (status < 0) { /* the backend may still write there */
        dscomm_priv_retain(all);
        return status;
    }
    status = offers_check_refusals(name, group, all);
    if (status == DSCOMM_OK)
        status = offers_compare(name, group, all);
    if (status == DSCOMM_OK)
        *ret_all = all;
    else
        g_free(all);
    return status;
}

static dscomm_compressor_t *new_compressor(size_t count, const char *codec,
                                           const dscomm_compressor_attr_t *attr)
{
    dscomm_compressor_t *c = g_try_new0(dscomm_compressor_t, 1);

    if (!c)
        return NULL;
    c->codec = dscomm_codec_find(codec ? codec : "onebit");
    c->args.size = sizeof c->args;
    c->geometry = attr->geometry;
    c->op = attr->sum ? DSCOMM_SUM : DSCOMM_AVG;
    c->feedback = attr->feedback == DSCOMM_FEEDBACK_ON;
    if (attr->feedback == DSCOMM_FEEDBACK_CODEC && c->codec)
        c->feedback = c->codec->feedback;
    c->count = count;
    c->asked = attr->padded;
    c->recoverable = attr->recoverable && c->feedback;
    return c;
}

static dscomm_status_t compressor_allocate(dscomm_compressor_t *c, int rank)
{
    const size_t server = dscomm_priv_part_count(c, rank);

    if (c->feedback)
        c->worker = new_errors(c->padded);
    c->server = new_errors(server);
    if (c->recoverable)
        c->kept = new_errors(c->padded + server);
    return c->server && (c->worker || !c->feedback) &&
                   (c->kept || !c->recoverable)
               ? DSCOMM_OK
               : dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                             "no memory for the errors of %zu elements",
                             c->count);
}

/* Fails if a call has failed: the communication of all compressors of the group
 * has then ended. */
static dscomm_status_t check_channel(dscomm_group_t *group)
{
    const dscomm_channel_t *channel = dscomm_priv_channel_of(group);
    dscomm_status_t status = DSCOMM_OK;

    if (channel && channel->group)
        status = dscomm_group_status(channel->group);
    if (status == DSCOMM_OK)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_STATE,
                       "a call of a compressor of this group has failed, and "
                       "ended all that its compressors send; make one of "
                       "another group of these ranks, as dscomm_group_split() "
                       "does");
}

dscomm_status_t dscomm_compressor_attr_init(dscomm_compressor_attr_t *attr,
                                            size_t size)
{
    return dscomm_priv_attr_init("dscomm_compressor_attr_init", attr, size);
}

/* The part of creation that needs no other rank. */
static dscomm_status_t compressor_prepare(dscomm_group_t *group, size_t count,
                                          const dscomm_compressor_attr_t *attr,
                                          const char *codec,
                                          dscomm_compressor_t **ret_c)
{
    dscomm_compressor_attr_t own = DSCOMM_COMPRESSOR_ATTR_INIT;
    dscomm_status_t status =
        dscomm_priv_attr_read("attr", "start from DSCOMM_COMPRESSOR_ATTR_INIT",
                              attr, sizeof own, &own);
    int ranks = dscomm_group_size(group);
    dscomm_compressor_t *c;

    if (status == DSCOMM_OK)
        status = check_channel(group);
    if (status == DSCOMM_OK)
        status = check_attr(&own);
    if (status < 0)
        return status;
    c = new_compressor(count, codec ? codec : own.codec, &own);
    *ret_c = c;
    if (!c)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a compressor");
    if (!c->codec)
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                           "there is no codec '%s'; there are %s", own.codec,
                           dscomm_codec_names());
    status = take_parameter(c, own.parameter);
    if (status == DSCOMM_OK)
        status = check_geometry(c, &own, ranks);
    if (status < 0)
        return status;
    lay_out(c, own.padded, ranks);
    status = dscomm_priv_size_rows(c);
    return status < 0 ? status
                      : compressor_allocate(c, dscomm_group_rank(group));
}

static dscomm_status_t compressor_join(dscomm_compressor_t *c,
                                       dscomm_group_t *group,
                                       const dscomm_window_wishes_t *wishes)
{
    dscomm_status_t status = dscomm_priv_channel_take(group, &c->channel);

    if (status < 0)
        return status;
    c->channel->windows.demand += dscomm_priv_window_need(c, c->channel->ranks);
    c->tag = c->channel->tags;
    c->signature = dscomm_priv_hash(&c->tag, sizeof c->tag, c->signature);
    c->channel->tags = (c->channel->tags + 2) & DSCOMM_TAG_MAX;
    return dscomm_priv_window_agree(c->channel, wishes);
}

/* Gives c the errors of compressors of an earlier group, if ranks offer any. */
static dscomm_status_t compressor_inherit(const char *name,
                                          dscomm_compressor_t *c,
                                          dscomm_compressor_t *old,
                                          dscomm_group_t *group,
                                          const offer_t *all)
{
    const int ranks = dscomm_group_size(group);
    dscomm_origin_t *origins = g_try_new(dscomm_origin_t, (gsize)ranks);
    dscomm_status_t status;

    if (!origins)
        return dscomm_priv_channel_fail(group);
    for (int r = 0; r < ranks; r++)
        origins[r] = all[r].origin;
    status = dscomm_priv_errors_inherit(name, c, old, group, origins);
    g_free(origins);
    return status;
}

/* status: of the preparation of c, NULL if there is no such. old: the
 * compressor whose errors c gets, or NULL. Takes over c, on failure as well. */
static dscomm_status_t compressor_meet(const char *name, dscomm_group_t *group,
                                       dscomm_compressor_t *c,
                                       dscomm_compressor_t *old,
                                       dscomm_status_t status,
                                       dscomm_compressor_t **ret_compressor)
{
    dscomm_window_wishes_t wishes;
    offer_t *all = NULL;

    status = offers_exchange(name, group, c, old, status, &all);
    if (status == DSCOMM_OK) {
        wishes = offers_collect(all, dscomm_group_size(group));
        status = compressor_join(c, group, &wishes);
    }
    if (status == DSCOMM_OK)
        status = compressor_inherit(name, c, old, group, all);
    g_free(all);
    if (status == DSCOMM_OK)
        *ret_compressor = c;
    else if (c)
        compressor_destroy(c);
    return status;
}

static dscomm_status_t compressor_create(const char *name,
                                         dscomm_group_t *group, size_t count,
                                         const dscomm_compressor_attr_t *attr,
                                         const char *codec,
                                         dscomm_compressor_t **ret_compressor)
{
    dscomm_compressor_t *c = NULL;
    dscomm_status_t status;

    if (!group)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: group is NULL", name);
    status = ret_compressor
                 ? compressor_prepare(group, count, attr, codec, &c)
                 : dscomm_fail(DSCOMM_ERR_INVALID, "ret_compressor is NULL");
    return compressor_meet(name, group, c, NULL, status, ret_compressor);
}

dscomm_status_t dscomm_compressor_create(dscomm_group_t *group, size_t count,
                                         const dscomm_compressor_attr_t *attr,
                                         dscomm_compressor_t **ret_compressor)
{
    return compressor_create("dscomm_compressor_create", group, count, attr,
                             NULL, ret_compressor);
}

dscomm_status_t dscomm_onebit_create(dscomm_group_t *group, size_t count,
                                     const dscomm_compressor_attr_t *attr,
                                     dscomm_compressor_t **ret_compressor)
{
    return compressor_create("dscomm_onebit_create", group, count, attr,
                             "onebit", ret_compressor);
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

    if (!compressor || dscomm_priv_channel_is_inherited(compressor->channel))
        return DSCOMM_OK;
    status = dscomm_priv_compressor_idle(compressor, "dscomm_compressor_free");
    if (status == DSCOMM_OK)
        compressor_destroy(compressor);
    return status;
}

/* The attributes with which c was made. A padded count that does not suit so
 * many ranks becomes the default. */
static dscomm_compressor_attr_t attr_of(const dscomm_compressor_t *c, int ranks)
{
    return (dscomm_compressor_attr_t){
        .size = sizeof(dscomm_compressor_attr_t),
        .geometry = c->geometry,
        .sum = c->op == DSCOMM_SUM,
        .feedback = c->feedback ? DSCOMM_FEEDBACK_ON : DSCOMM_FEEDBACK_OFF,
        .padded = c->asked % (8 * (size_t)ranks) ? 0 : c->asked,
        .parameter = c->args.parameter,
        .recoverable = c->recoverable,
    };
}

/* Gives c the group and the errors of other, and frees what c had. */
static void compressor_replace(dscomm_compressor_t *c,
                               dscomm_compressor_t *other)
{
    const dscomm_compressor_t old = *c;

    *c = *other;
    *other = old;
    c->asked = old.asked;
    c->stream = old.stream;
    c->mask = old.mask;
    c->mask_hash = old.mask_hash;
    c->signature ^= old.mask_hash;
    other->mask = NULL;
    compressor_destroy(other);
}

dscomm_status_t dscomm_compressor_rebind(dscomm_compressor_t *compressor,
                                         dscomm_group_t *group)
{
    const char *name = "dscomm_compressor_rebind";
    dscomm_compressor_t *c = NULL;
    dscomm_compressor_attr_t attr;
    dscomm_status_t status = dscomm_priv_compressor_idle(compressor, name);

    if (!group)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: group is NULL", name);
    if (status == DSCOMM_OK) {
        attr = attr_of(compressor, dscomm_group_size(group));
        status = compressor_prepare(group, compressor->count, &attr,
                                    compressor->codec->name, &c);
    }
    if (status == DSCOMM_OK)
        status = dscomm_priv_device_home(compressor, 0);
    status = compressor_meet(name, group, c, compressor, status, &c);
    if (status == DSCOMM_OK)
        compressor_replace(compressor, c);
    return status;
}

dscomm_status_t dscomm_compressor_set_stream(dscomm_compressor_t *compressor,
                                             void *stream)
{
    dscomm_status_t status =
        dscomm_priv_compressor_idle(compressor, "dscomm_compressor_set_stream");

    if (status == DSCOMM_OK)
        compressor->stream = stream;
    return status;
}
