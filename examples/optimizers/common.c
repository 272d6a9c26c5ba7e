/* SPDX-License-Identifier: BSD-3-Clause */
/* What the optimizers have in common: memory, averages over ranks, traffic. */
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
           a->local_max >= 1;
}

static void init_layers(optimizer_t *o, const size_t *sizes)
{
    for (size_t i = 0; i < o->layer_count; i++) {
        o->layers[i] =
            (optimizer_layer_t){.size = sizes[i], .ratio = 1, .scale = 1};
        o->count += sizes[i];
    }
}

/* A vector more, since calloc() may give NULL for none. */
static int alloc_vectors(optimizer_t *o)
{
    size_t vectors = 3 + o->kind->vectors;

    o->momentum = calloc(o->count + 1, vectors * sizeof(float));
    o->mask = calloc(o->count + 1, 1);
    if (!o->momentum || !o->mask)
        return 0;
    o->variance = o->momentum + o->count;
    o->mean = o->variance + o->count;
    o->more = o->mean + o->count;
    return 1;
}

static dscomm_status_t init_onebit(optimizer_t *o)
{
    dscomm_compressor_info_t info = {.size = sizeof(info)};
    size_t ranks = (size_t)dscomm_group_size(o->group);
    dscomm_status_t status;

    status = dscomm_onebit_create(o->group, o->count, NULL, &o->onebit);
    if (status == DSCOMM_OK)
        status = dscomm_compressor_info(o->onebit, &info);
    o->onebit_bytes = info.wire_bytes;
    /* All but its own of the parts, once to reduce and once to gather them */
    o->ring_bytes = 2 * (ranks - 1) * o->count * sizeof(float) / ranks;
    return status;
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
            status = init_onebit(o);
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
    dscomm_onebit_free(optimizer->onebit);
    free(optimizer->layers);
    free(optimizer->momentum);
    free(optimizer->mask);
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

dscomm_status_t optimizer_average(optimizer_t *optimizer, const float *gradient)
{
    optimizer_t *o = optimizer;

    o->traffic.sent += o->ring_bytes;
    return dscomm_all_reduce(o->group, gradient, o->mean, o->count,
                             DSCOMM_FLOAT32, DSCOMM_AVG, NULL);
}

dscomm_status_t optimizer_average_signs(optimizer_t *optimizer, float *vector)
{
    optimizer->traffic.sent += optimizer->onebit_bytes;
    return dscomm_onebit_all_reduce(optimizer->onebit, vector, DSCOMM_FLOAT32,
                                    NULL);
}

dscomm_status_t optimizer_mask(optimizer_t *optimizer)
{
    optimizer_t *o = optimizer;
    size_t still = 0;

    for (size_t i = 0; i < o->count; i++) {
        o->mask[i] = o->variance[i] > 0;
        still += !o->mask[i];
    }
    return dscomm_compressor_set_mask(o->onebit, still ? o->mask : NULL);
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
