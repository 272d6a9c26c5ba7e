/* SPDX-License-Identifier: BSD-3-Clause */
/* What the functions of dscomm/info.h have in common. */
#ifndef LIB_INFO_H
#define LIB_INFO_H

#include <dscomm/status.h>

/* The size of a structure of any version; NULL where there is none. */
dscomm_status_t dscomm_priv_info_check(const char *name, const size_t *size);

/* Members that an older caller does not know are left out, those that a newer
 * one has besides are zeroed; info's own size is left. known: of *from. */
void dscomm_priv_info_copy(const void *from, size_t known, void *info);

#endif
