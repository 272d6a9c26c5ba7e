/* SPDX-License-Identifier: BSD-3-Clause */
/* Structs that begin with their size, as in the caller's version of the
 * headers: attributes of calls, and tables of functions. */
#ifndef LIB_ATTR_H
#define LIB_ATTR_H

#include <dscomm/status.h>
#include <stddef.h>

/* Copies attr, of which the caller knows attr->size bytes, over the size bytes
 * at ret_attr, which this libdscomm knows; if attr is NULL, leaves these
 * unchanged. ERR_INVALID if attr->size is invalid, or if a member that this
 * libdscomm does not know is set. what names call and argument ("dscomm_init:
 * attr"), remedy tells how to set the size ("start from
 * DSCOMM_INIT_ATTR_INIT"). */
dscomm_status_t dscomm_priv_attr_read(const char *what, const char *remedy,
                                      const void *attr, size_t size,
                                      void *ret_attr);

/* The same for a table of functions, whose size must be whole pointers. */
dscomm_status_t dscomm_priv_table_read(const char *what, const char *remedy,
                                       const void *table, size_t size,
                                       void *ret_table);

/* Sets the size bytes at attr to the defaults of all attributes: the size, then
 * zeros. ERR_INVALID if attr is NULL or size is invalid; name is the public
 * call's. */
dscomm_status_t dscomm_priv_attr_init(const char *name, void *attr,
                                      size_t size);

/* Checks the size member of a struct that the call name fills in. ERR_INVALID
 * if size is NULL or *size is invalid; the sentence names the call's
 * argument. */
dscomm_status_t dscomm_priv_info_check(const char *name, const char *argument,
                                       const size_t *size);

/* Fills in info from the known bytes at from. Members that an older caller does
 * not know are left out; members that only a newer caller has are zeroed;
 * info's size stays. */
void dscomm_priv_info_copy(const void *from, size_t known, void *info);

#endif
