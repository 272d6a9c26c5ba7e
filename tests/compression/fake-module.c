/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for cuda.so: the fake devices, whose memory is that of the fake
 * driver which the process has loaded, tests/lib/device/driver.c. */
#include "config.h"

#include "tests/compression/fake-device.h"

FAKE_EXPORT const dscomm_device_ops_t *dscomm_device_cuda(uint32_t abi);
const dscomm_device_ops_t *dscomm_device_cuda(uint32_t abi)
{
    return abi == DSCOMM_DEVICE_ABI ? fake_device_table() : NULL;
}
