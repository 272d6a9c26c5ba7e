/* SPDX-License-Identifier: BSD-3-Clause */
/* What is checked of a file before it is loaded. */
#ifndef LIB_SHARED_OBJECT_H
#define LIB_SHARED_OBJECT_H

#include <glib.h>

/* NULL if path is a complete shared object, else what is wrong (to be freed).
 */
char *dscomm_priv_check_shared_object(const char *path);

#endif
