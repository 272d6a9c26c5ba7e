/* SPDX-License-Identifier: BSD-3-Clause */
/* 1-bit Adam, algorithm 1 of arXiv:2102.02888. After the warm-up of T_w steps,
 *
 *     m_t^(i) = beta1 m_(t-1) + (1 - beta1) g_t^(i)    on rank i
 *     m_t     = the mean of m_t^(i), in signs, with the errors of both sides
 *     x_(t+1) = x_t - rate m_t / (sqrt(v_Tw) + epsilon)
 *
 * and before it Adam, in whose form there no bias is corrected either.
 *
 * DeepSpeed's OnebitAdam (deepspeed/runtime/fp16/onebit/adam.py, 0.19.6)
 * differs from this and the paper, beside what common.h says:
 *
 *   - it compresses each tensor with scales of its own, this all layers with
 *     one, unless per_layer is set. If the momenta of tensors differ in size,
 *     so do the scales: after 50 steps on 4 ranks the weights of two tensors
 *     whose gradients differ by 100 were 139 % apart, by 10 32 %, by 1 6 %
 *     (README.md has the setting, and the distance from Adam). */
#include "common.h"
#include <math.h>
#include <string.h>

static void adam_move(const optimizer_t *o, float *weights)
{
    for (size_t i = 0; i < o->count; i++)
        weights[i] -= o->attr.rate * o->momentum[i] /
                      (sqrtf(o->variance[i]) + o->attr.epsilon);
}

/* Adam on the mean gradient; after the last such step the variance stays. */
static dscomm_status_t adam_warm_up(optimizer_t *o, const float *gradient)
{
    dscomm_status_t status = optimizer_average(o, gradient);

    if (status != DSCOMM_OK)
        return status;
    optimizer_decay(o->momentum, o->mean, o->attr.beta1, o->count);
    optimizer_decay_square(o->variance, o->mean, o->attr.beta2, o->count);
    if (o->steps + 1 == o->attr.warmup)
        status = optimizer_mask(o);
    return status;
}

/* Averages the momenta, in the mean, so that the old one is there if that
 * fails. */
static dscomm_status_t adam_average(optimizer_t *o, const float *gradient)
{
    dscomm_status_t status;

    memcpy(o->mean, o->momentum, o->count * sizeof(float));
    optimizer_decay(o->mean, gradient, o->attr.beta1, o->count);
    status = optimizer_average_signs(o, o->mean);
    if (status == DSCOMM_OK)
        memcpy(o->momentum, o->mean, o->count * sizeof(float));
    return status;
}

static dscomm_status_t adam_step(optimizer_t *optimizer, float *weights,
                                 const float *gradient)
{
    optimizer_t *o = optimizer;
    dscomm_status_t status = o->steps < o->attr.warmup
                                 ? adam_warm_up(o, gradient)
                                 : adam_average(o, gradient);

    if (status == DSCOMM_OK)
        adam_move(o, weights);
    return status;
}

const optimizer_kind_t onebit_adam = {.bytes = sizeof(optimizer_t),
                                      .step = adam_step};
