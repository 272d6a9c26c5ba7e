/* SPDX-License-Identifier: BSD-3-Clause */
/* One compressor's errors on a device. */
#ifndef COMPRESSION_DEVICE_SIDE_H
#define COMPRESSION_DEVICE_SIDE_H

#include "compression/device/device.h"

/* The worker error has two arrays: encoding writes to the other one, so that
 * the old errors are still there if the scale is not finite. */
struct dscomm_device_side {
    int device;
    dscomm_device_queue_t *queue;
    char *memory; /* of all arrays */
    float *worker[2], *server;
    float *scales; /* of worker[0], worker[1] and server */
    int now; /* index of the valid worker array */
    int ahead; /* 1: the host's errors are out of date */
    int behind; /* 1: the device's are */
    int late; /* 1: the device may still use the host's */
    float *kept[2]; /* the host's, after the compressor was freed */
};

/* Elements of the server error. */
static inline size_t side_server_count(const dscomm_compressor_t *c)
{
    return dscomm_priv_part_count(c, c->channel->rank);
}
/* Gives the part a side on that device, with the compressor's errors.
 * ERR_NO_MEMORY: the device has no room; the host keeps the errors. */
dscomm_status_t dscomm_priv_device_take_side(part_t *part, int device);
/* Materialises the worker errors on the device: a scale of 0. The table's
 * code. */
int dscomm_priv_device_materialise_worker(dscomm_device_side_t *side,
                                          const dscomm_compressor_t *c);

#endif
