/* SPDX-License-Identifier: BSD-3-Clause */
/* Dumps in the form of PyTorch's flight recorder, for its analyzer. */
#ifndef TOOLS_TORCH_H
#define TOOLS_TORCH_H

#include "tools/analyze/dump.h"

/* Writes a file for each rank to folder, which is made if it does not exist and
 * must be empty. NULL, or a sentence; g_free(). */
char *torch_write(const dumps_t *dumps, const char *folder);

#endif
