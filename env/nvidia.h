/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs of NVIDIA's driver that this process may use. A container may show
 * others in /sys. */
#ifndef ENV_NVIDIA_H
#define ENV_NVIDIA_H

#include <glib.h>

/* Returns the PCI addresses, as "0000:1a:00.0", of the GPUs that the driver
 * lists and whose device file may be read and written, in no order. root: "",
 * or a folder that stands for "/". NULL: there is no driver, or it has made no
 * device files yet. */
GPtrArray *dscomm_priv_nvidia_gpus(const char *root);

#endif
