/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fake device computes, a job of each kind, in the plainest way. */
#ifndef TESTS_COMPRESSION_FAKE_KERNELS_H
#define TESTS_COMPRESSION_FAKE_KERNELS_H

#include "tests/compression/fake-device.h"

/* args is of the type that the table's function has. */
void fake_device_worker(const void *args);
void fake_device_server(const void *args);
void fake_device_unpack(const void *args);
void fake_device_materialise(const void *args);
void fake_device_take_back(const void *args);

/* Of the device: whose memory is at pointer, -1: nobody's; how many bytes are
 * there from pointer on; memory of a certain one. */
int fake_device_number(const void *pointer);
size_t fake_device_room(const void *pointer);
void *fake_device_alloc_on(int device, size_t bytes);
int fake_device_chosen(void);
/* Another process maps memory by the handle that its owner has made; NULL: it
 * cannot. */
void fake_device_lend(const void *memory, char handle[64]);
void *fake_device_map(int device, const char handle[64]);
/* Pieces of memory, each mapping one. */
int fake_device_mappings(void);
int fake_device_is_mapped(const void *pointer);
/* Waits as long as results are held; tells what happens to memory. */
void fake_device_held(void);
void fake_device_happens(fake_event_t event, const void *pointer);

#endif
