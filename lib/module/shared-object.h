/* SPDX-License-Identifier: BSD-3-Clause */
/* What is checked of a file before it is loaded. */
#ifndef LIB_SHARED_OBJECT_H
#define LIB_SHARED_OBJECT_H

#include <glib.h>

/* NULL where path is a whole shared object, else why not (to be freed). */
char *dscomm_priv_check_shared_object(const char *path);

#endif
