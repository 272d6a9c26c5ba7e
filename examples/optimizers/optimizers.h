/* SPDX-License-Identifier: BSD-3-Clause */
/* Optimizers that send a bit where others send a float.
 *
 * Every rank has all the weights, and the gradient of its own share of a batch.
 * The gradient of the batch is the mean of the ranks' gradients. An optimizer
 * does what makes one step of the ranks' gradients, communication included, so
 * that it can send something better than gradients:
 *
 *   onebit_adam    1-bit Adam (arXiv:2102.02888): Adam until its variance is
 *                  good, which then stays, and the momentum is sent as signs.
 *   onebit_lamb    1-bit LAMB (arXiv:2104.06069): the same for LAMB, where each
 *                  layer has a learning rate of its own.
 *   zero_one_adam  0/1 Adam (arXiv:2202.06009): no warm-up; signs from the
 *                  first step on, the variance at fewer and fewer steps, and
 *                  then nothing at all at most steps.
 *
 * Weights begin equal on all ranks. All ranks make the same calls. */
#ifndef OPTIMIZERS_H
#define OPTIMIZERS_H

#include <dscomm/dscomm.h>

typedef struct optimizer optimizer_t;

typedef struct {
    float rate, beta1, beta2, epsilon;
    /* The steps that send floats; with zero_one_adam the steps after which the
     * variance stays and ranks begin to walk alone. */
    long warmup;

    /* onebit_lamb: bounds of a layer's coefficient, and how it is averaged */
    float coefficient_min, coefficient_max, coefficient_beta;
    /* onebit_lamb: bounds of what the coefficient is multiplied with after the
     * warm-up, and by which part of itself that may change in a step */
    float ratio_min, ratio_max, ratio_change;

    /* zero_one_adam: the steps between two updates of the variance are twice as
     * many after every so many updates. */
    long variance_doubling;
    /* zero_one_adam: the steps that ranks walk alone are twice as many after
     * every so many steps, and no more than local_max. */
    long local_doubling, local_max;

    /* 1: each layer is sent with scales of its own, as DeepSpeed's Adams do,
     * and not all with one. Layers whose momenta differ in size learn the
     * better for it; each costs a header and a scale. */
    int per_layer;

    /* 1: the ranks that are left can go on after others have died, see
     * optimizer_rebind(). It takes a copy of the state. */
    int recoverable;
} optimizer_attr_t;
#define OPTIMIZER_ATTR_INIT                                                    \
    {                                                                          \
        1e-3f, 0.9f, 0.999f, 1e-8f, 100000, 0.01f, 10.0f, 0.9f, 0.5f, 4.0f,    \
            0.1f, 16, 32678, 16, 0, 0                                          \
    }

typedef struct optimizer_kind optimizer_kind_t;
extern const optimizer_kind_t onebit_adam, onebit_lamb, zero_one_adam;

/* For the count weights of layers that lie one after the other; sizes[i] is how
 * many layer i has. attr may be NULL. Collective over group, which outlives the
 * optimizer. ERR_INVALID: attr makes no sense. ERR_UNSUPPORTED: zero_one_adam
 * is not recoverable, because its ranks walk alone. */
dscomm_status_t optimizer_create(const optimizer_kind_t *kind,
                                 dscomm_group_t *group,
                                 const optimizer_attr_t *attr,
                                 const size_t *sizes, size_t layers,
                                 optimizer_t **ret_optimizer);

/* NULL is fine. */
void optimizer_free(optimizer_t *optimizer);

/* One step of the weights. gradient is this rank's. */
dscomm_status_t optimizer_step(optimizer_t *optimizer, float *weights,
                               const float *gradient);

/* Makes the weights the same on all ranks, where they have walked alone. Before
 * a test, or the end. */
dscomm_status_t optimizer_sync(optimizer_t *optimizer, float *weights);

/* Goes on with group, which dscomm_group_shrink() has made after a step has
 * failed. Collective over group. A rank on which the last step has failed
 * although another one has made it gets the weights and the state of that one;
 * on the other ranks nothing has changed. *ret_steps is the number of steps
 * that have been made, on all ranks the same. If it fails because another rank
 * has died, shrink group and call it again. */
dscomm_status_t optimizer_rebind(optimizer_t *optimizer, dscomm_group_t *group,
                                 float *weights, int64_t *ret_steps);

/* Bytes that this rank has sent, and would have if every step had been a ring
 * all-reduce of the gradient in float32; in bytes. */
typedef struct {
    size_t sent, plain;
} optimizer_traffic_t;
optimizer_traffic_t optimizer_traffic(const optimizer_t *optimizer);

#endif
