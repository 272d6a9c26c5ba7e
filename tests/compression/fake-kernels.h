/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fake device computes, a job of each kind, in the plainest way. */
#ifndef TESTS_COMPRESSION_FAKE_KERNELS_H
#define TESTS_COMPRESSION_FAKE_KERNELS_H

/* args is of the type that the table's function has. */
void fake_device_worker(const void *args);
void fake_device_server(const void *args);
void fake_device_unpack(const void *args);
void fake_device_materialise(const void *args);
void fake_device_take_back(const void *args);

/* Of the device: where it finds what is at pointer itself; and waits as long as
 * results are held. */
void *fake_device_shadow(const void *pointer);
void fake_device_held(void);

#endif
