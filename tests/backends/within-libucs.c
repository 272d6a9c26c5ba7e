/* SPDX-License-Identifier: BSD-3-Clause */
/* A library with the name of one of MPI's, which asks for memory. */
#include "config.h"

#include <stddef.h>

__attribute__((visibility("default"))) void *
ucs_ask(void *(*allocate)(size_t size), size_t size);

void *ucs_ask(void *(*allocate)(size_t size), size_t size)
{
    void *volatile memory = allocate(size); /* no tail call */

    return memory;
}
