/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a CUDA device for the buffers of a rank, by CUDA's driver, which is
 * loaded only for this. */
#ifndef TOOLS_PERF_ACCELERATOR_H
#define TOOLS_PERF_ACCELERATOR_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

/* Loads the driver and chooses device number `local` of this machine, or,
 * beyond the last one, begins with the first again. NULL, or what is wrong;
 * g_free(). */
char *perf_accelerator_open(int local);

/* Allocates device memory. NULL, or what is wrong; g_free(). */
char *perf_accelerator_alloc(size_t bytes, void **ret_memory);
/* memory may be NULL. */
void perf_accelerator_free(void *memory);

#endif
