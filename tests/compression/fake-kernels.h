/* SPDX-License-Identifier: BSD-3-Clause */
/* The computations of the fake device, one job of each kind, in the simplest
 * form. */
#ifndef TESTS_COMPRESSION_FAKE_KERNELS_H
#define TESTS_COMPRESSION_FAKE_KERNELS_H

#include "tests/compression/fake-device.h"

/* args has the type of the argument in the table. */
void fake_device_worker(const void *args);
void fake_device_server(const void *args);
void fake_device_unpack(const void *args);
void fake_device_materialise(const void *args);
void fake_device_take_back(const void *args);

/* Functions of the device: the device that owns pointer (-1: none); the number
 * of bytes from pointer on; allocation on a certain device. */
int fake_device_number(const void *pointer);
size_t fake_device_room(const void *pointer);
void *fake_device_alloc_on(int device, size_t bytes);
int fake_device_chosen(void);
/* lend makes a handle of memory, with which map maps it in another process;
 * NULL: it cannot. */
void fake_device_lend(const void *memory, char handle[64]);
void *fake_device_map(int device, const char handle[64]);
/* Returns a descriptor of the memory's file, whose position is that of
 * memory. */
int fake_device_open(const void *memory);
/* Number of mappings of other processes' pieces. */
int fake_device_mappings(void);
int fake_device_is_mapped(const void *pointer);
/* held waits while results are held; happens reports an event on the device of
 * pointer. */
void fake_device_held(void);
void fake_device_happens(fake_event_t event, const void *pointer);

#endif
