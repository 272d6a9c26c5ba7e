/* SPDX-License-Identifier: BSD-3-Clause */
/* The regions of a call in device memory. The device writes and reads rows
 * there; they are copied to and from the host's regions packet by packet, and
 * marks in the device's queue show when a copy is complete. If messages use
 * device memory, or other ranks map it, only headers are copied to the host. */
#ifndef COMPRESSION_DEVICE_ROWS_H
#define COMPRESSION_DEVICE_ROWS_H

#include "compression/device/device.h"

/* The table's format for a dtype, or -1. In part.c. */
int dscomm_priv_device_format(dscomm_dtype_t dtype);

/* Gives x a queue of that device, with room for marks. */
dscomm_status_t dscomm_priv_device_marks(dscomm_exchange_t *x, int device);
/* Allocates the regions there, in a window if possible. ERR_NO_MEMORY: the
 * device has no room. */
dscomm_status_t dscomm_priv_device_regions(dscomm_exchange_t *x, int device);
/* The device's address of what the host has at here. */
char *dscomm_priv_device_there(const dscomm_exchange_t *x, const char *here);

/* The following put work on the queue and return the table's code. */

/* Copies to the host what it needs of packet p at that stage, and sets a mark
 * after it; nothing if it needs nothing. */
int dscomm_priv_device_down(dscomm_exchange_t *x, stage_t stage, size_t p);
/* Copies a received packet p to the device; or its headers from there to the
 * host; or its rows out of windows. */
int dscomm_priv_device_came(dscomm_exchange_t *x, stage_t stage, size_t p);
/* Copies the headers of a part, from byte skip on, to the device, in so many
 * regions beginning with first. */
int dscomm_priv_device_headers(const dscomm_exchange_t *x, const part_t *part,
                               const char *first, int ranks, size_t skip);
/* Sets a mark for the end of the call. */
int dscomm_priv_device_mark_end(dscomm_exchange_t *x);

#endif
