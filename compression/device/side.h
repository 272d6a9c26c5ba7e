/* SPDX-License-Identifier: BSD-3-Clause */
/* One compressor's errors on a device. */
#ifndef COMPRESSION_DEVICE_SIDE_H
#define COMPRESSION_DEVICE_SIDE_H

#include "compression/device/device.h"

/* Two arrays for the worker error: what is encoded goes to the other one, and
 * where the scale turns out not to be finite the errors are as before. */
struct dscomm_device_side {
    int device;
    dscomm_device_queue_t *queue;
    char *memory; /* all that follows lies there */
    float *worker[2], *server;
    float *scales; /* of the two worker arrays, and of the server's */
    int now; /* index of the worker array that holds */
    int ahead; /* the host's errors are old */
    int behind; /* the device's are */
    int late; /* the device may still use the host's */
    float *kept[2]; /* these, once the compressor is gone */
};

/* Gives the part a side at that device, whose errors are the compressor's.
 * ERR_NO_MEMORY: there is no room for one, and the host has the errors. */
dscomm_status_t dscomm_priv_device_take_side(part_t *part, int device);
/* In a device: the errors as they are, with a scale of 0; the table's code. */
int dscomm_priv_device_materialise_worker(dscomm_device_side_t *side,
                                          const dscomm_compressor_t *c);

#endif
