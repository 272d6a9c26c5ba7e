/* SPDX-License-Identifier: BSD-3-Clause */
/* 0/1 Adam, algorithm 1 of arXiv:2202.06009. On rank i, with T_v the steps at
 * which the variance is updated, T_u those at which ranks meet, and t' the step
 * after which they did so last:
 *
 *     m_t+    = beta1 m_t + (1 - beta1) g_t^(i)
 *     x_t+    = x_t - rate_t m_t+ / sqrt(v_t + epsilon)
 *     u_t+    = u_t + rate_t m_t+
 *     t in T_u:  u = the mean of u_t+, in signs, with the errors of both sides
 *                m_(t+1) = u / (the sum of the rates since t')
 *                x_(t+1) = x_t' - u / sqrt(v_t + epsilon)
 *                u_(t+1) = 0
 *     else:      x, m and u go on from t+
 *     t in T_v:  v_(t+1) = beta2 v_t + (1 - beta2) (the mean of g_t^(i))^2
 *
 * T_v and T_u follow the rules of its experiments: update j of the variance is
 * followed by the next after 2^floor(j / variance_doubling) steps, from step 0
 * until step warmup; ranks meet at all steps until there, and then the steps
 * between two meetings double every local_doubling steps, up to local_max. The
 * numbers that they begin with are those of DeepSpeed's var_update_scaler,
 * local_step_scaler and local_step_clipper: 16, 32678 and 16.
 *
 * One thing is not the paper's: v_0 is the square of the first mean gradient.
 * With v_0 = 0, the first steps would be divided by sqrt(epsilon) alone.
 *
 * DeepSpeed's ZeroOneAdam (deepspeed/runtime/fp16/onebit/zoadam.py, 0.19.6)
 * differs, beside what common.h says:
 *
 *   - its v_0 is 0;
 *   - until the variance stays it sends gradients, not u, and only floats at
 *     the steps of T_v; then it forgets the errors and begins to send u, times
 *     sqrt(v) + epsilon;
 *   - it updates the variance at steps that its interval divides, the first of
 *     which is its second step, and has epsilon outside of the root;
 *   - it compresses each tensor with scales of its own, this all layers with
 *     one, unless per_layer is set. */
#include "common.h"
#include <math.h>
#include <string.h>

typedef struct {
    optimizer_t base;
    long next_variance, variances; /* updates of it so far */
    long next_meeting;
    float rates; /* their sum since the last meeting */
} zero_one_t;

static float *way_of(const optimizer_t *o)
{
    return o->more;
}

static float *start_of(const optimizer_t *o)
{
    return o->more + o->count;
}

/* weights = from - way / sqrt(v + epsilon) */
static void zero_one_move(const optimizer_t *o, const float *from,
                          const float *way, float rate, float *weights)
{
    for (size_t i = 0; i < o->count; i++)
        weights[i] =
            from[i] - rate * way[i] / sqrtf(o->variance[i] + o->attr.epsilon);
}

static dscomm_status_t zero_one_meet(optimizer_t *optimizer, float *weights)
{
    zero_one_t *z = (zero_one_t *)optimizer;
    optimizer_t *o = optimizer;
    float *way = way_of(o), *start = start_of(o);
    dscomm_status_t status;

    if (z->rates == 0) /* no step since the last one */
        return DSCOMM_OK;
    status = optimizer_average_signs(o, way);
    if (status != DSCOMM_OK)
        return status;
    for (size_t i = 0; i < o->count; i++)
        o->momentum[i] = way[i] / z->rates;
    zero_one_move(o, start, way, 1, weights);
    memcpy(start, weights, o->count * sizeof(float));
    memset(way, 0, o->count * sizeof(float));
    z->rates = 0;
    return DSCOMM_OK;
}

static long power_of_two(long exponent)
{
    return 1L << (exponent < 30 ? exponent : 30);
}

static void plan_meeting(zero_one_t *z)
{
    const optimizer_attr_t *a = &z->base.attr;
    long alone = z->base.steps - a->warmup, interval = 1;

    if (alone > 0)
        interval = power_of_two(alone / a->local_doubling);
    z->next_meeting =
        z->base.steps + (interval < a->local_max ? interval : a->local_max);
}

static dscomm_status_t update_variance(zero_one_t *z, const float *gradient)
{
    optimizer_t *o = &z->base;
    /* With v_0 as it is, v_1 is the same. */
    float beta2 = o->steps ? o->attr.beta2 : 0;
    dscomm_status_t status = optimizer_average(o, gradient);

    if (status != DSCOMM_OK)
        return status;
    optimizer_decay_square(o->variance, o->mean, beta2, o->count);
    z->next_variance +=
        power_of_two(z->variances++ / o->attr.variance_doubling);
    return optimizer_mask(o);
}

static void zero_one_walk(zero_one_t *z, float *weights, const float *gradient)
{
    optimizer_t *o = &z->base;
    float *way = way_of(o);

    optimizer_decay(o->momentum, gradient, o->attr.beta1, o->count);
    for (size_t i = 0; i < o->count; i++) {
        o->momentum[i] = o->mask[i] ? o->momentum[i] : 0;
        way[i] += o->attr.rate * o->momentum[i];
    }
    zero_one_move(o, weights, o->momentum, o->attr.rate, weights);
    z->rates += o->attr.rate;
}

static dscomm_status_t zero_one_step(optimizer_t *optimizer, float *weights,
                                     const float *gradient)
{
    zero_one_t *z = (zero_one_t *)optimizer;
    optimizer_t *o = optimizer;
    dscomm_status_t status = DSCOMM_OK;

    if (o->steps == 0) {
        memcpy(start_of(o), weights, o->count * sizeof(float));
        status = update_variance(z, gradient);
    }
    if (status != DSCOMM_OK)
        return status;
    zero_one_walk(z, weights, gradient);
    if (o->steps == z->next_meeting) {
        status = zero_one_meet(o, weights);
        plan_meeting(z);
    }
    if (status == DSCOMM_OK && o->steps == z->next_variance &&
        o->steps < o->attr.warmup)
        status = update_variance(z, gradient);
    return status;
}

const optimizer_kind_t zero_one_adam = {.bytes = sizeof(zero_one_t),
                                        .vectors = 2,
                                        .step = zero_one_step,
                                        .sync = zero_one_meet};
