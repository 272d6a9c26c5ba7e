/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared object that is no backend module. With BORROWED it needs a library
 * that has the symbol which a module must define itself. */
#include "config.h"

#include <dscomm/backend.h>

#ifdef BORROWED
DSCOMM_BACKEND_EXPORT extern const dscomm_backend_t BORROWED;
#define WHAT &BORROWED
#else
#define WHAT NULL
#endif

DSCOMM_API const void *nothing_to_see(void);
const void *nothing_to_see(void)
{
    return WHAT;
}
