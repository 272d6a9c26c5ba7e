/* SPDX-License-Identifier: BSD-3-Clause */
/* 1-bit LAMB, algorithm 1 of arXiv:2104.06069. In the warm-up, LAMB without
 * weight decay: for each layer
 *
 *     u_t     = m_t / (sqrt(v_t) + epsilon)
 *     c_t     = |x_t| / |u_t|, within [coefficient_min, coefficient_max]
 *     c       = coefficient_beta c + (1 - coefficient_beta) c_t
 *     x_(t+1) = x_t - rate c_t u_t
 *
 * After it the momenta of all layers are averaged together, in signs, each
 * layer multiplied by what brings all to the same size and divided by it again.
 * The gradient that this stands for keeps a second, fresh variance w_t going on
 * from v_Tw, which tells how the coefficient would have gone on:
 *
 *     g_t     = (m_t - beta1 m_(t-1)) / (1 - beta1)
 *     r_t     = max((sqrt(v_Tw) + epsilon) / (sqrt(w_t) + epsilon)), within
 *               [ratio_min, ratio_max] and then r_(t-1) (1 +- ratio_change)
 *     x_(t+1) = x_t - rate c r_t m_t / (sqrt(v_Tw) + epsilon)
 *
 * The bounds that they begin with are those of DeepSpeed's OnebitLamb
 * (deepspeed/runtime/fp16/onebit/lamb.py, 0.19.6): coefficients from 0.01 to
 * 10, of which 0.9 stays; ratios from 0.5 to 4, which change by a tenth. It
 * bounds in the same order, has epsilon where it is here, and compresses all
 * layers together too. Beside what common.h says, it leaves coefficients of
 * exactly 1 out of their average. */
#include "common.h"
#include <math.h>
#include <string.h>

static float *fresh_of(const optimizer_t *o)
{
    return o->more;
}

static float *last_of(const optimizer_t *o)
{
    return o->more + o->count;
}

static float within(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static double norm(const float *vector, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (double)vector[i] * vector[i];
    return sqrt(sum);
}

static float lamb_step_size(const optimizer_t *o, size_t i)
{
    return o->momentum[i] / (sqrtf(o->variance[i]) + o->attr.epsilon);
}

static void lamb_move(const optimizer_t *o, size_t first, size_t size,
                      float coefficient, float *weights)
{
    for (size_t i = first; i < first + size; i++)
        weights[i] -= o->attr.rate * coefficient * lamb_step_size(o, i);
}

/* 1 where a norm is zero, as of biases that begin so */
static float coefficient_of(const optimizer_t *o, size_t first, size_t size,
                            const float *weights)
{
    double sum = 0, length = norm(weights + first, size);

    for (size_t i = first; i < first + size; i++)
        sum += (double)lamb_step_size(o, i) * lamb_step_size(o, i);
    if (length == 0 || sum == 0)
        return 1;
    return within((float)(length / sqrt(sum)), o->attr.coefficient_min,
                  o->attr.coefficient_max);
}

/* All momenta to the mean of their root mean squares, where there is one. */
static void set_scales(optimizer_t *o)
{
    const float *momentum = o->momentum;
    double sum = 0;

    for (size_t l = 0; l < o->layer_count; l++) {
        size_t size = o->layers[l].size;
        double rms = size ? norm(momentum, size) / sqrt((double)size) : 0;
        o->layers[l].scale = (float)rms;
        sum += rms;
        momentum += size;
    }
    for (size_t l = 0; l < o->layer_count; l++) {
        float rms = o->layers[l].scale;
        o->layers[l].scale =
            rms > 0 ? (float)(sum / (double)o->layer_count) / rms : 1;
    }
}

static dscomm_status_t end_warm_up(optimizer_t *o)
{
    memcpy(fresh_of(o), o->variance, o->count * sizeof(float));
    set_scales(o);
    return optimizer_mask(o);
}

static dscomm_status_t lamb_warm_up(optimizer_t *o, float *weights,
                                    const float *gradient)
{
    dscomm_status_t status = optimizer_average(o, gradient);
    size_t first = 0;

    if (status != DSCOMM_OK)
        return status;
    optimizer_decay(o->momentum, o->mean, o->attr.beta1, o->count);
    optimizer_decay_square(o->variance, o->mean, o->attr.beta2, o->count);
    for (optimizer_layer_t *l = o->layers; l < o->layers + o->layer_count;
         first += l++->size) {
        float c = coefficient_of(o, first, l->size, weights);
        optimizer_decay(&l->coefficient, &c, o->attr.coefficient_beta, 1);
        lamb_move(o, first, l->size, c, weights);
    }
    return o->steps + 1 == o->attr.warmup ? end_warm_up(o) : DSCOMM_OK;
}

/* momentum = the mean of all ranks'; last = the one of the step before. */
static dscomm_status_t average_momentum(optimizer_t *o, const float *gradient)
{
    dscomm_status_t status;
    size_t i = 0;

    memcpy(last_of(o), o->momentum, o->count * sizeof(float));
    optimizer_decay(o->momentum, gradient, o->attr.beta1, o->count);
    for (size_t l = 0; l < o->layer_count; l++)
        for (size_t end = i + o->layers[l].size; i < end; i++)
            o->momentum[i] *= o->layers[l].scale;
    status = optimizer_average_signs(o, o->momentum);
    i = 0;
    for (size_t l = 0; l < o->layer_count; l++)
        for (size_t end = i + o->layers[l].size; i < end; i++)
            o->momentum[i] /= o->layers[l].scale;
    if (status != DSCOMM_OK)
        memcpy(o->momentum, last_of(o), o->count * sizeof(float));
    return status;
}

static void freshen(optimizer_t *o)
{
    const float *last = last_of(o);
    float beta1 = o->attr.beta1;

    for (size_t i = 0; i < o->count; i++) {
        float gradient = (o->momentum[i] - beta1 * last[i]) / (1 - beta1);
        optimizer_decay_square(&fresh_of(o)[i], &gradient, o->attr.beta2, 1);
    }
}

static float next_ratio(const optimizer_t *o, size_t first, size_t size,
                        float last)
{
    const float *fresh = fresh_of(o);
    float change = o->attr.ratio_change, epsilon = o->attr.epsilon, most = 0;

    for (size_t i = first; i < first + size; i++) {
        float ratio =
            (sqrtf(o->variance[i]) + epsilon) / (sqrtf(fresh[i]) + epsilon);
        most = ratio > most ? ratio : most;
    }
    most = within(most, o->attr.ratio_min, o->attr.ratio_max);
    return within(most, last * (1 - change), last * (1 + change));
}

static dscomm_status_t compressed(optimizer_t *o, float *weights,
                                  const float *gradient)
{
    dscomm_status_t status = average_momentum(o, gradient);
    size_t first = 0;

    if (status != DSCOMM_OK)
        return status;
    freshen(o);
    for (optimizer_layer_t *l = o->layers; l < o->layers + o->layer_count;
         first += l++->size) {
        l->ratio = next_ratio(o, first, l->size, l->ratio);
        lamb_move(o, first, l->size, l->coefficient * l->ratio, weights);
    }
    return DSCOMM_OK;
}

static dscomm_status_t lamb_step(optimizer_t *optimizer, float *weights,
                                 const float *gradient)
{
    if (optimizer->steps < optimizer->attr.warmup)
        return lamb_warm_up(optimizer, weights, gradient);
    return compressed(optimizer, weights, gradient);
}

const optimizer_kind_t onebit_lamb = {
    .bytes = sizeof(optimizer_t), .vectors = 2, .step = lamb_step};
