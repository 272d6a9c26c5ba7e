/* SPDX-License-Identifier: BSD-3-Clause */
/* The regions of a call in the memory of a device. Rows are made and read
 * there; they come to the host's regions and go from these packet by packet,
 * with marks in the device's queue that tell when. Where messages go from and
 * to the device's memory, or others read it, headers alone come to the host. */
#ifndef COMPRESSION_DEVICE_ROWS_H
#define COMPRESSION_DEVICE_ROWS_H

#include "compression/device/device.h"

/* What the table calls elements of a dtype, or -1. In device-part.c. */
int dscomm_priv_device_format(dscomm_dtype_t dtype);

/* Gives x a queue of that device, with places for marks, */
dscomm_status_t dscomm_priv_device_marks(dscomm_exchange_t *x, int device);
/* and such regions there, in a window if there can be. ERR_NO_MEMORY: there is
 * no room for them. */
dscomm_status_t dscomm_priv_device_regions(dscomm_exchange_t *x, int device);
/* Where the device has what the host has here. */
char *dscomm_priv_device_there(const dscomm_exchange_t *x, const char *here);

/* All that follows is put on the queue, and returns the table's code. */

/* What the host is to see of packet p at that stage, and a mark behind it;
 * none where there is nothing. */
int dscomm_priv_device_down(dscomm_exchange_t *x, stage_t stage, size_t p);
/* What has come with packet p: to the device, or its headers from there; or
 * out of windows to where it belongs. */
int dscomm_priv_device_came(dscomm_exchange_t *x, stage_t stage, size_t p);
/* Headers of a part, from byte skip on, in so many regions from first on, to
 * the device. */
int dscomm_priv_device_headers(const dscomm_exchange_t *x, const part_t *part,
                               const char *first, int ranks, size_t skip);
/* A mark for the end of the call. */
int dscomm_priv_device_mark_end(dscomm_exchange_t *x);

#endif
