/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and functions of the optimizers, for them alone.
 *
 * All of DeepSpeed's differ from these:
 *
 *   - they pad with zeros, which get errors and pull on the scale; here nothing
 *     is padded (DSCOMM_GEOMETRY_NATIVE);
 *   - they have weight decay, which adds weight_decay * x_t to the update, and
 *     with LAMB to its norm; these have none;
 *   - elements without a gradient are masked here, in what is sent and in its
 *     errors; there the user may give a mask, for the result alone;
 *   - they throw the first step away, and compress nothing where there is one
 *     rank. */
#ifndef COMMON_H
#define COMMON_H

#include "optimizers.h"
#include <dscomm/compression.h>

struct optimizer_kind {
    size_t bytes; /* of the structure, which begins with an optimizer_t */
    size_t vectors; /* of floats, beside those of optimizer_t */
    /* A step that fails leaves the weights, and the state but the mean, as they
     * were. */
    dscomm_status_t (*step)(optimizer_t *optimizer, float *weights,
                            const float *gradient);
    dscomm_status_t (*sync)(optimizer_t *optimizer, float *weights);
};

typedef struct {
    size_t size;
    /* Of onebit_lamb: the average of the coefficient, what it is multiplied
     * with, and the factor of the momentum when it is sent */
    float coefficient, ratio, scale;
} optimizer_layer_t;

struct optimizer {
    const optimizer_kind_t *kind;
    dscomm_group_t *group;
    optimizer_attr_t attr;
    optimizer_layer_t *layers;
    size_t layer_count, count;
    long steps; /* made so far */
    float *momentum, *variance;
    float *mean; /* of the ranks' gradients */
    float *more; /* kind->vectors times count, one after the other */
    uint8_t *mask; /* 0 where the variance is */
    dscomm_compressor_t **onebits; /* of all layers together, or of each */
    void **parts; /* of a vector, one for each of them */
    char *copy; /* of the weights and the state; NULL: not recoverable */
    size_t onebit_count;
    size_t ring_bytes, onebit_bytes; /* that this rank sends in one call */
    optimizer_traffic_t traffic;
};

/* mean = the mean of the ranks' gradients, in floats */
dscomm_status_t optimizer_average(optimizer_t *optimizer,
                                  const float *gradient);

/* vector = the mean of the ranks' vectors, in signs */
dscomm_status_t optimizer_average_signs(optimizer_t *optimizer, float *vector);

/* Elements without a variance have had no gradient, and no sign says "still
 * none": they are taken out of what is sent as signs. So do the masks that
 * DeepSpeed's users give; the papers do not speak of it. */
dscomm_status_t optimizer_mask(optimizer_t *optimizer);

/* average = beta * average + (1 - beta) * value, and the same of its square */
void optimizer_decay(float *average, const float *value, float beta,
                     size_t count);
void optimizer_decay_square(float *average, const float *value, float beta,
                            size_t count);

#endif
