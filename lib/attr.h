/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of calls: structs that begin with their size, as the caller's
 * headers have them. */
#ifndef LIB_ATTR_H
#define LIB_ATTR_H

#include <dscomm/status.h>
#include <stddef.h>

/* What attr (NULL: nothing) says, over the size bytes at ret_attr, which are
 * this libdscomm's. ERR_INVALID where its size makes no sense, or where a
 * member is set that is not known here. name is the call's, and initializer the
 * macro that attr should have started from. */
dscomm_status_t dscomm_priv_attr_read(const char *name, const char *initializer,
                                      const void *attr, size_t size,
                                      void *ret_attr);

#endif
