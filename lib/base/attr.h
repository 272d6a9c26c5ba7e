/* SPDX-License-Identifier: BSD-3-Clause */
/* Structs that begin with their size, as the caller's headers have them:
 * attributes of calls, tables of functions. */
#ifndef LIB_ATTR_H
#define LIB_ATTR_H

#include <dscomm/status.h>
#include <stddef.h>

/* Reads attr, of which the caller's headers know attr->size bytes, over the
 * size bytes at ret_attr, which are this libdscomm's; NULL leaves them as they
 * are. ERR_INVALID if the size makes no sense, or if a member is set that is
 * not known here. what names call and argument ("dscomm_init: attr"), remedy
 * tells how to set the size ("start from DSCOMM_INIT_ATTR_INIT"). */
dscomm_status_t dscomm_priv_attr_read(const char *what, const char *remedy,
                                      const void *attr, size_t size,
                                      void *ret_attr);

/* Sets the size bytes at attr to the defaults of all attributes: the size, then
 * zeros. ERR_INVALID if attr is NULL or the size makes no sense; name is the
 * public call's. */
dscomm_status_t dscomm_priv_attr_init(const char *name, void *attr,
                                      size_t size);

/* ERR_INVALID if size, that of a struct which a call fills in for name, is NULL
 * or makes no sense. */
dscomm_status_t dscomm_priv_info_check(const char *name, const size_t *size);

/* Fills in info from the known bytes at from: members that an older caller does
 * not know are left out, those that only a newer one has are zeroed, and info's
 * size stays. */
void dscomm_priv_info_copy(const void *from, size_t known, void *info);

#endif
