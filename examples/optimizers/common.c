/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that all optimizers use: memory, averages over ranks, traffic. */
#include "common.h"
#include <stdlib.h>
#include <string.h>

static int is_beta(float beta)
{
    return beta >= 0 && beta < 1;
}

static int makes_sense(const optimizer_attr_t *a)
{
    return is_beta(a->beta1) && is_beta(a->beta2) &&
           is_beta(a->coefficient_beta) && a->epsilon > 0 && a->warmup >= 1 &&
           a->coefficient_min <= a->coefficient_max &&
           a->ratio_min <= a->ratio_max && a->ratio_change >= 0 &&
           a->variance_doubling >= 1 && a->local_doubling >= 1 &&
           a->local_max >= 1 && (a->per_layer == 0 || a->per_layer == 1) &&
           (a->recoverable == 0 || a->recoverable == 1);
}

static void init_layers(optimizer_t *o, const size_t *sizes)
{
    for (size_t i = 0; i < o->layer_count; i++) {
        o->layers[i] =
            (optimizer_layer_t){.size = sizes[i], .ratio = 1, .scale = 1};
        o->count += sizes[i];
    }
}

/* The bytes of the weights and the state. */
static size_t state_bytes(const optimizer_t *o)
{
    return (4 + o->kind->vectors) * o->count * sizeof(float) +
           o->layer_count * sizeof(*o->layers);
}

/* A vector more, since calloc() may give NULL for none. */
static int alloc_vectors(optimizer_t *o)
{
    size_t vectors = 3 + o->kind->vectors;

    o->momentum = calloc(o->count + 1, vectors * sizeof(float));
    o->mask = calloc(o->count + 1, 1);
    if (o->attr.recoverable)
        o->copy = calloc(state_bytes(o) + 1, 1);
    if (!o->momentum || !o->mask || (o->attr.recoverable && !o->copy))
        return 0;
    o->variance = o->momentum + o->count;
    o->mean = o->variance + o->count;
    o->more = o->mean + o->count;
    return 1;
}

static size_t onebit_size(const optimizer_t *o, size_t i)
{
    return o->attr.per_layer ? o->layers[i].size : o->count;
}

static dscomm_status_t add_onebit(optimizer_t *o)
{
    dscomm_compressor_attr_t attr = DSCOMM_COMPRESSOR_ATTR_INIT;
    size_t i = o->onebit_count;
    dscomm_status_t status;

    attr.recoverable = o->attr.recoverable;
    status = dscomm_onebit_create(o->group, onebit_size(o, i), &attr,
                                  &o->onebits[i]);
    o->onebit_count += status == DSCOMM_OK;
    return status;
}

/* Finds how many bytes a call sends in the present group. */
static dscomm_status_t measure(optimizer_t *o)
{
    size_t ranks = (size_t)dscomm_group_size(o->group);
    dscomm_status_t status = DSCOMM_OK;

    /* All but its own of the parts, once to reduce and once to gather them */
    o->ring_bytes = 2 * (ranks - 1) * o->count * sizeof(float) / ranks;
    o->onebit_bytes = 0;
    for (size_t i = 0; i < o->onebit_count && status == DSCOMM_OK; i++) {
        dscomm_compressor_info_t info = {.size = sizeof(info)};

        status = dscomm_compressor_info(o->onebits[i], &info);
        o->onebit_bytes += info.wire_bytes;
    }
    return status;
}

static dscomm_status_t init_onebits(optimizer_t *o)
{
    size_t count = o->attr.per_layer ? o->layer_count : 1;
    dscomm_status_t status = DSCOMM_OK;

    o->onebits = calloc(count + 1, sizeof(*o->onebits));
    o->parts = calloc(count + 1, sizeof(*o->parts));
    if (!o->onebits || !o->parts)
        return DSCOMM_ERR_NO_MEMORY;
    while (status == DSCOMM_OK && o->onebit_count < count)
        status = add_onebit(o);
    return status == DSCOMM_OK ? measure(o) : status;
}

dscomm_status_t optimizer_create(const optimizer_kind_t *kind,
                                 dscomm_group_t *group,
                                 const optimizer_attr_t *attr,
                                 const size_t *sizes, size_t layers,
                                 optimizer_t **ret_optimizer)
{
    static const optimizer_attr_t usual = OPTIMIZER_ATTR_INIT;
    dscomm_status_t status = DSCOMM_ERR_NO_MEMORY;
    optimizer_t *o;

    attr = attr ? attr : &usual;
    if (!makes_sense(attr))
        return DSCOMM_ERR_INVALID;
    if (attr->recoverable && kind->sync)
        return DSCOMM_ERR_UNSUPPORTED;
    o = calloc(1, kind->bytes);
    if (!o)
        return DSCOMM_ERR_NO_MEMORY;
    o->kind = kind;
    o->group = group;
    o->attr = *attr;
    o->layer_count = layers;
    o->layers = calloc(layers + 1, sizeof(*o->layers));
    if (o->layers) {
        init_layers(o, sizes);
        if (alloc_vectors(o))
            status = init_onebits(o);
    }
    if (status == DSCOMM_OK)
        *ret_optimizer = o;
    else
        optimizer_free(o);
    return status;
}

void optimizer_free(optimizer_t *optimizer)
{
    if (!optimizer)
        return;
    for (size_t i = 0; i < optimizer->onebit_count; i++)
        dscomm_compressor_free(optimizer->onebits[i]);
    free(optimizer->onebits);
    free(optimizer->parts);
    free(optimizer->layers);
    free(optimizer->momentum);
    free(optimizer->mask);
    free(optimizer->copy);
    free(optimizer);
}

dscomm_status_t optimizer_step(optimizer_t *optimizer, float *weights,
                               const float *gradient)
{
    dscomm_status_t status =
        optimizer->kind->step(optimizer, weights, gradient);

    if (status == DSCOMM_OK) {
        optimizer->steps++;
        optimizer->traffic.plain += optimizer->ring_bytes;
    }
    return status;
}

dscomm_status_t optimizer_sync(optimizer_t *optimizer, float *weights)
{
    if (!optimizer->kind->sync)
        return DSCOMM_OK;
    return optimizer->kind->sync(optimizer, weights);
}

optimizer_traffic_t optimizer_traffic(const optimizer_t *optimizer)
{
    return optimizer->traffic;
}

/* Gets the weights and the state from rank root of group. */
static dscomm_status_t state_get(optimizer_t *o, dscomm_group_t *group,
                                 int root, float *weights)
{
    const size_t size = o->count * sizeof(float);
    const size_t vectors = (3 + o->kind->vectors) * size;
    dscomm_status_t status;

    memcpy(o->copy, weights, size);
    memcpy(o->copy + size, o->momentum, vectors);
    memcpy(o->copy + size + vectors, o->layers,
           o->layer_count * sizeof(*o->layers));
    status = dscomm_broadcast(group, o->copy, state_bytes(o), DSCOMM_UINT8,
                              root, NULL);
    if (status != DSCOMM_OK)
        return status;
    memcpy(weights, o->copy, size);
    memcpy(o->momentum, o->copy + size, vectors);
    memcpy(o->layers, o->copy + size + vectors,
           o->layer_count * sizeof(*o->layers));
    return DSCOMM_OK;
}

/* Brings all ranks of group to the same step. */
static dscomm_status_t catch_up(optimizer_t *o, dscomm_group_t *group,
                                float *weights)
{
    int64_t steps = o->steps, most;
    int root;
    dscomm_status_t status = dscomm_all_reduce(group, &steps, &most, 1,
                                               DSCOMM_INT64, DSCOMM_MAX, NULL);

    if (status != DSCOMM_OK)
        return status;
    root = steps == most ? dscomm_group_rank(group) : INT32_MAX;
    status = dscomm_all_reduce(group, &root, &root, 1, DSCOMM_INT32, DSCOMM_MIN,
                               NULL);
    if (status == DSCOMM_OK)
        status = state_get(o, group, root, weights);
    if (status != DSCOMM_OK)
        return status;
    o->steps = (long)most;
    /* The step that this rank has missed may have been the last one of the
     * warm-up. */
    if (steps < o->attr.warmup && most >= o->attr.warmup)
        status = optimizer_mask(o);
    return status;
}

dscomm_status_t optimizer_rebind(optimizer_t *optimizer, dscomm_group_t *group,
                                 float *weights, int64_t *ret_steps)
{
    optimizer_t *o = optimizer;
    dscomm_status_t status = DSCOMM_ERR_STATE;

    if (o->copy)
        status = catch_up(o, group, weights);
    for (size_t i = 0; i < o->onebit_count && status == DSCOMM_OK; i++)
        status = dscomm_compressor_rebind(o->onebits[i], group);
    if (status != DSCOMM_OK)
        return status;
    o->group = group;
    *ret_steps = o->steps;
    return measure(o);
}

dscomm_status_t optimizer_average(optimizer_t *optimizer, const float *gradient)
{
    optimizer_t *o = optimizer;

    o->traffic.sent += o->ring_bytes;
    return dscomm_all_reduce(o->group, gradient, o->mean, o->count,
                             DSCOMM_FLOAT32, DSCOMM_AVG, NULL);
}

dscomm_status_t optimizer_average_signs(optimizer_t *optimizer, float *vector)
{
    optimizer_t *o = optimizer;

    for (size_t i = 0; i < o->onebit_count; vector += onebit_size(o, i++))
        o->parts[i] = vector;
    o->traffic.sent += o->onebit_bytes;
    if (o->onebit_count == 0)
        return DSCOMM_OK;
    return dscomm_compressor_all_reduce_many(
        o->onebits, o->parts, o->onebit_count, DSCOMM_FLOAT32, NULL);
}

static dscomm_status_t mask_onebit(optimizer_t *o, size_t which, size_t first)
{
    size_t size = onebit_size(o, which), still = 0;
    uint8_t *mask = o->mask + first;

    for (size_t i = 0; i < size; i++) {
        mask[i] = o->variance[first + i] > 0;
        still += !mask[i];
    }
    return dscomm_compressor_set_mask(o->onebits[which], still ? mask : NULL);
}

dscomm_status_t optimizer_mask(optimizer_t *optimizer)
{
    optimizer_t *o = optimizer;
    dscomm_status_t status = DSCOMM_OK;
    size_t first = 0;

    for (size_t i = 0; i < o->onebit_count && status == DSCOMM_OK; i++) {
        status = mask_onebit(o, i, first);
        first += onebit_size(o, i);
    }
    return status;
}

void optimizer_decay(float *average, const float *value, float beta,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        average[i] = beta * average[i] + (1 - beta) * value[i];
}

void optimizer_decay_square(float *average, const float *value, float beta,
                            size_t count)
{
    for (size_t i = 0; i < count; i++)
        average[i] = beta * average[i] + (1 - beta) * (value[i] * value[i]);
}
